"""What every result says, a module for each question; importing them makes `document_of` whole."""

from itrust.render.document import as_html as as_html
from itrust.render.document import as_text as as_text
from itrust.render.document import document_of as document_of
from itrust.render.document import in_notebook as in_notebook
from itrust.render.text import auditing as auditing
from itrust.render.text import balance as balance
from itrust.render.text import bias as bias
from itrust.render.text import calibration as calibration
from itrust.render.text import comparisons as comparisons
from itrust.render.text import overturning as overturning
from itrust.render.text import tasks as tasks
from itrust.render.text import validation as validation
from itrust.render.text import verdict as verdict
from itrust.render.text import watch as watch
