"""Which settings are read, and what a file that somebody planted can do."""

import os
import stat
from pathlib import Path

import pytest

from itrust import InputError
from itrust.cli import audit as audit_module
from itrust.cli import recalibrate as recalibrate_module
from itrust.cli import settings
from itrust.cli.settings import MAX_BYTES, find_settings, folders
from shell import invoke

STRANGER = 54_321


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A folder below the home folder, with a file to audit."""
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "homes.csv").write_text("y,p,age\n1,0.4,3\n0,0.3,4\n")
    return place


@pytest.fixture
def options(monkeypatch):
    seen = []
    for module in (audit_module, recalibrate_module):
        monkeypatch.setattr(module, "run", lambda found: seen.append(found) or 0)
    return seen


def refused(*args, command="audit"):
    result = invoke(command, "homes.csv", *args, env={"COLUMNS": "100"})
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    *_, told = result.stderr.strip().replace("\n  ", " ").split("\n")
    return told


# Where settings are looked for.


def test_the_search_ends_at_the_home_folder(tmp_path, project):
    assert list(folders(project)) == [project, tmp_path]


@pytest.mark.parametrize("mark", [".git", ".hg"])
@pytest.mark.parametrize("as_file", [True, False], ids=["file", "folder"])
def test_the_search_ends_at_the_root_of_a_repository(mark, as_file, tmp_path, project):
    (project / mark).touch() if as_file else (project / mark).mkdir()
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "itrust.toml").write_text("seed = 1")
    assert list(folders(deep)) == [deep, deep.parent, project]
    assert find_settings(deep).path is None


def test_the_search_ends_before_a_folder_that_everyone_may_write_to(tmp_path, project, monkeypatch):
    monkeypatch.setenv("HOME", "/nowhere")
    (tmp_path / "itrust.toml").write_text("seed = 1")
    assert find_settings(project).values == {"seed": 1}
    tmp_path.chmod(0o1777)
    assert list(folders(project)) == [project]
    (tmp_path / "itrust.toml").rename(project / "itrust.toml")
    project.chmod(0o1777)  # one's own file in such a folder is one's own
    assert find_settings(project).values == {"seed": 1}


def owned_by(monkeypatch, path, user):
    """Files are another user's, as `lstat` says; a link is not followed."""
    inodes = {os.lstat(path).st_ino}
    real = os.lstat

    def changed(*args, **settings):
        found = real(*args, **settings)
        if found.st_ino not in inodes:
            return found
        return os.stat_result([*found[:4], user, *found[5:]])

    monkeypatch.setattr(settings.os, "lstat", changed)


@pytest.mark.parametrize("name", ["itrust.toml", "pyproject.toml"])
def test_settings_of_another_user_are_refused_until_they_are_named(
    name, project, monkeypatch, options
):
    (project / name).write_text("[tool.itrust]\nseed = 1" if "py" in name else "seed = 1")
    owned_by(monkeypatch, project / name, STRANGER)
    told = refused()
    assert f"./{name} belongs to another user, so its settings are not used; name it" in told
    assert invoke("audit", "homes.csv", "--settings", name).exit_code == 0
    assert invoke("audit", "homes.csv", "--settings", "none").exit_code == 0
    assert [found.seed for found in options] == [1, 0]


def test_settings_of_the_owner_of_the_current_folder_are_read(project, monkeypatch):
    """As in a container, where the mounted folder is not that of the user."""
    (project / "itrust.toml").write_text("seed = 1")
    owned_by(monkeypatch, project / "itrust.toml", STRANGER)
    real = os.stat
    monkeypatch.setattr(
        settings.os,
        "stat",
        lambda path: os.stat_result([*real(path)[:4], STRANGER, *real(path)[5:]]),
    )
    assert find_settings(project).values == {"seed": 1}


def test_a_link_of_another_user_is_refused_wherever_it_leads(project, monkeypatch):
    (project / "mine.toml").write_text("seed = 1")
    (project / "itrust.toml").symlink_to("mine.toml")
    assert find_settings(project).values == {"seed": 1}
    owned_by(monkeypatch, project / "itrust.toml", STRANGER)
    assert "belongs to another user" in refused()


def test_settings_that_everyone_may_change_are_refused(project):
    (project / "itrust.toml").write_text("seed = 1")
    (project / "itrust.toml").chmod(0o666)
    assert "everyone may change ./itrust.toml" in refused()


# What they may name.


@pytest.mark.parametrize("name", ["json", "report", "junit", "summary", "out", "save"])
@pytest.mark.parametrize(
    "place",
    ["/etc/planted", "../other.txt", "~/other.txt", "~root/x", "link/other.txt", "a/../../b"],
)
def test_outputs_that_settings_name_stay_in_their_folder(name, place, tmp_path, project):
    (tmp_path / "other.txt").write_text("mine")
    (project / "link").symlink_to(tmp_path)
    (project / "itrust.toml").write_text(f'quiet = true\n{name} = "{place}"\n')
    told = refused(command="recalibrate" if name in ("out", "save") else "audit")
    expected = f"./itrust.toml: {name} = '{place}' lies outside the folder of the settings; "
    assert told == f"itrust: {expected}name it on the command line instead (--{name})"
    assert (tmp_path / "other.txt").read_text() == "mine"


def test_what_settings_name_is_what_was_checked(project):
    """Behind a link `..` leads elsewhere than the text says: inside here, outside by its text."""
    (project / "d1" / "d2").mkdir(parents=True)
    (project / "in").symlink_to(project / "d1" / "d2")
    (project / "itrust.toml").write_text('json = "in/../../other.txt"')
    named = find_settings(project).values["json"]
    assert os.path.realpath(named) == os.path.realpath(project / "other.txt")
    assert os.path.normpath(project / named) == os.path.normpath(project / "other.txt")


@pytest.mark.parametrize("place", [".git/config", ".bashrc", "a/.b/c.json"])
def test_outputs_that_settings_name_are_not_hidden(place, project):
    (project / "itrust.toml").write_text(f'json = "{place}"')
    assert "is a hidden file or in a hidden folder; name it on the command line" in refused()


@pytest.mark.parametrize("name", ["recalibrate", "apply", "load"])
def test_inputs_that_settings_name_stay_in_their_folder(name, tmp_path, project):
    (tmp_path / "secret.csv").write_text("y,p\n1,0.2\n")
    (project / "itrust.toml").write_text(f'{name} = "../secret.csv"')
    told = refused(command="audit" if name == "recalibrate" else "recalibrate")
    assert f"{name} = '../secret.csv' lies outside the folder of the settings" in told


@pytest.mark.parametrize("named", ["data/*.csv", "data"])
def test_patterns_and_folders_of_settings_do_not_lead_out_by_links(named, tmp_path, project):
    (tmp_path / "secret.csv").write_text("y,p,age\n1,0.2,3\n0,0.3,4\n")
    (project / "data").mkdir()
    (project / "data" / "rows.csv").symlink_to(tmp_path / "secret.csv")
    (project / "itrust.toml").write_text(f'apply = "{named}"\nout = "copy.csv"\nmethod = "platt"')
    args = ["--label", "y", "--prob", "p", "--on", "age"]
    told = refused(*args, command="recalibrate")
    assert "rows.csv lies outside the folder of the settings that name it" in told
    assert not (project / "copy.csv").exists()


# Damaged files, and what is no file.


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"seed = 1\n[", "cannot be read: "),
        (b"\xff\xfe", "cannot be read: 'utf-8' codec can't decode byte"),
        (b"seed = " + b"9" * 5000, "cannot be read: Exceeds the limit"),
        (
            b"seed = 0x" + b"f" * 9000,
            "--seed takes a whole number, not a number of very many digits",
        ),
        (b"positive = 0x" + b"f" * 9000, "positive has too many digits"),
        (b"title = 0x" + b"f" * 9000, "title must be text, not a number of very many digits"),
        (b"on = " + b"[" * 5000, "cannot be read: it is nested too deeply"),
        (b"on = " + b"{a=" * 5000, "cannot be read: it is nested too deeply"),
        (b"seed = 1" + b" " * MAX_BYTES, "holds more than 32,768 bytes, too many"),
        (b"alpha = nan", "--alpha takes a number, not nan"),
        (b"alpha = 1e400", "--alpha takes a number, not inf"),
        (b"alpha = 2024-01-31", "alpha must be a number, not datetime.date"),
        (b"seed = 07:32:00", "seed must be a whole number, not datetime.time"),
        (b"[label]\na = 1", "label must be text, not {'a': 1}"),
        (b'json = "a\\u0000b"', "json must be the name of a file to write, not 'a\\x00b'"),
        (b'json = ""', "json must be the name of a file to write, not ''"),
        (b"min_cell = 1\nmin-cell = 2", "'min-cell' stands there twice"),
        (b"draws = 10_000_001", "--draws takes at most 10,000,000, not 10000001"),
    ],
)
def test_damaged_settings_get_one_sentence(content, told, project):
    (project / "itrust.toml").write_bytes(content)
    assert told in refused()


def test_a_mark_before_the_text_is_no_damage(project):
    (project / "itrust.toml").write_bytes(b"\xef\xbb\xbfseed = 1")
    assert find_settings(project).values == {"seed": 1}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("tool = 'itrust'", "./pyproject.toml: 'tool' must be a table, not 'itrust'"),
        ("[tool]\nitrust = 3", "./pyproject.toml: 'itrust' must be a table, not 3"),
        ("[tool.itrust", "./pyproject.toml cannot be read: "),
    ],
)
def test_a_damaged_project_that_mentions_the_command_is_refused(content, told, project):
    (project / "pyproject.toml").write_text(content)
    assert told in refused()


@pytest.mark.parametrize("kind", ["damaged", "folder", "pipe", "loop", "dangling"])
def test_a_project_that_does_not_mention_the_command_is_passed_over(kind, project, options):
    place = project / "pyproject.toml"
    made = {
        "damaged": lambda: place.write_bytes(b"[tool\xff"),
        "folder": place.mkdir,
        "pipe": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place.name),
        "dangling": lambda: place.symlink_to("missing"),
    }
    made[kind]()
    assert invoke("audit", "homes.csv").exit_code == 0
    assert options


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("folder", "is no ordinary file, so that it can hold no settings"),
        ("pipe", "is no ordinary file, so that it can hold no settings"),
        ("loop", "cannot be read: Too many levels of symbolic links"),
        ("dangling", "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_file_holds_no_settings(kind, told, project):
    place = project / "itrust.toml"
    made = {
        "folder": place.mkdir,
        "pipe": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place.name),
        "dangling": lambda: place.symlink_to("missing"),
    }
    made[kind]()
    assert refused() == f"itrust: ./itrust.toml {told}"


@pytest.mark.parametrize("name", ["itrust.toml", "pyproject.toml"])
def test_a_file_that_may_not_be_read_is_refused(name, project, monkeypatch):
    (project / name).write_text("seed = 1")
    real = Path.open

    def denied(path, *args, **settings):
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **settings)

    monkeypatch.setattr(Path, "open", denied)
    assert refused() == f"itrust: ./{name} cannot be read: Permission denied"


def test_a_current_folder_that_is_gone_is_told(project):
    gone = project / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    assert "the current folder cannot be read" in refused()


def test_files_of_settings_are_trusted_by_what_was_read(project):
    """The mode is that of the file behind a link."""
    (project / "mine.toml").write_text("seed = 1")
    (project / "mine.toml").chmod(0o666)
    (project / "itrust.toml").symlink_to("mine.toml")
    assert stat.S_IWOTH & os.stat("itrust.toml").st_mode
    with pytest.raises(InputError, match="everyone may change"):
        find_settings(project)
