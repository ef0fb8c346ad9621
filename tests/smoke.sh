# What a user does first, in an empty folder: `sh smoke.sh BIN`, BIN being where `python` and `itrust` are.
set -eu
bin=$1
"$bin/python" -c 'import itrust; print("itrust", itrust.__version__, "is imported")'
"$bin/python" -m itrust --version
"$bin/itrust" demo --rows homes.csv >demo.txt
grep -q 'miscalibrated' demo.txt
"$bin/itrust" audit homes.csv --label owner --prob p --on age,region --task 'mean(age)' \
    --draws 99 --report page.html --json audit.json --quiet >audit.txt
"$bin/python" - <<'END'
import json

audit = json.load(open("audit.json", encoding="utf-8"))
assert audit["verdict"] == "miscalibrated", audit["verdict"]
assert "<html" in open("page.html", encoding="utf-8").read()
END
"$bin/itrust" recalibrate homes.csv --label owner --prob p --on age,region --quiet --save learned.json >learned.txt
test -s learned.json
echo "the demo, an audit with page and JSON, and a recalibration went well"
