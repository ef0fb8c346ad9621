# The fast tests against the installed wheel: `sh installed.sh ENVIRONMENT FOLDER WORKERS`, from the root of the project.
# Tests come from the sdist, without its sources, so that only the wheel can be imported.
set -eu
python=$(cd "$1/bin" && pwd)/python
rm -rf "$2"
mkdir -p "$2/empty"
tar -xzf dist/*.tar.gz -C "$2" --strip-components 1
rm -rf "$2/src"
cd "$2/empty"
sh ../tests/smoke.sh "$(dirname "$python")"
cd ..
"$python" - <<'END'
import itrust

assert "site-packages" in itrust.__file__, itrust.__file__
END
OMP_NUM_THREADS=1 "$python" -m pytest -n "$3" -q -p no:cacheprovider -m "not slow" tests
