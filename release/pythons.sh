# The wheel on every Python that is here: `sh pythons.sh VERSIONS WORKERS`, from the root of the project.
# VERSIONS are such as 3.12, found on the path or among those of pyenv, or paths of interpreters.
# Which are missing is said aloud, and a missing one is no failure unless ITRUST_REQUIRE_PYTHONS=1.
set -eu
found='' missing='' failed=''

interpreter() {
    for candidate in "$1" "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if path=$(command -v "$candidate") && "$path" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$path"
            return
        fi
    done
}

# uv, because pip takes ten times as long, four times.
install() {
    .venv-release/bin/uv pip install --no-config --quiet --python "$environment/bin/python" \
        --constraints constraints.txt "$@"
}

for version in $1; do
    path=$(interpreter "$version")
    if [ -z "$path" ]; then
        missing="$missing $version"
        continue
    fi
    name=$("$path" -c 'import platform; print(platform.python_version())')
    echo "--- Python $name ($path)"
    environment=build/pythons/$name
    if "$path" -m venv --clear "$environment" &&
        install "$(ls dist/*.whl)[dask,excel,stata]" duckdb fairlearn hypothesis jsonschema lightgbm openpyxl \
            pandas patsy polars ppi-python probcal pytest pytest-xdist pyyaml selenium statsmodels &&
        install --no-deps MCGrad &&
        sh release/installed.sh "$environment" "build/pythons/tests-$name" "$2"; then
        found="$found $name"
    else
        failed="$failed $name"
    fi
done
echo "--- passed on:${found:- none}; failed on:${failed:- none}; not here, so not tried:${missing:- none}"
test -z "$failed" && test -n "$found" && { test -z "$missing" || test "${ITRUST_REQUIRE_PYTHONS:-0}" != 1; }
