# What a user does first, in an empty folder: `sh smoke.sh BIN`, BIN being where `python` and `itrust` are.
# Needs nothing but the package. Ends with the README's examples, word by word.
set -eu
bin=$1
here=$(cd "$(dirname "$0")" && pwd)
"$bin/python" -c 'import itrust; print("itrust", itrust.__version__, "is imported from", itrust.__path__[0])'
test "$("$bin/python" -m itrust --version)" = "$("$bin/itrust" --version)"
"$bin/itrust" doctor >doctor.txt
"$bin/itrust" demo --rows homes.csv >demo.txt
grep -q 'miscalibrated' demo.txt
"$bin/itrust" audit homes.csv --label owner --prob p --on age,region --task 'mean(age)' \
    --draws 99 --report page.html --json audit.json --quiet >audit.txt
"$bin/python" - <<'END'
import json

audit = json.load(open("audit.json", encoding="utf-8"))
assert audit["verdict"] == "miscalibrated", audit["verdict"]
page = open("page.html", encoding="utf-8").read()
assert "<html" in page and "window.vegaEmbed=" in page and "Licences of the chart library" in page
END
"$bin/itrust" recalibrate homes.csv --label owner --prob p --on age,region --quiet --save learned.json >learned.txt
test -s learned.json
echo "the demo, an audit with page and JSON, and a recalibration went well"
rm -f homes.csv page.html
"$bin/python" "$here/smoke.py" "$here/../README.md"
test -s page.html
