import pytest

from quantail.errors import QuantailError
from quantail.trust import Origin, import_named, module_of, origin_of, trust_flags, trusted_modules


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("my_envs:My-v0", "my_envs"),
        ("my.envs:My/Own-v0", "my.envs"),
        ("my_risks:beta", "my_risks"),
        ("utility:my_risks:root", "my_risks"),
        ("CartPole-v1", ""),
        ("ALE/Pong-v5", ""),
        ("my_risks:Spread:0.1,3", "my_risks"),
        ("my_risks:Spread:x", ""),
        ("my_schedules:Nan", "my_schedules"),
        ("my_risks:inf", "my_risks"),
        ("cvar:0.25", ""),
        ("wang:-0.75", ""),
        ("ray://localhost:6379", ""),
        ("localhost:6379", ""),
        ("function my.envs.make", ""),
        ("a b:c", ""),
        (":beta", ""),
        ("my_risks:", ""),
    ],
)
def test_the_module_of_a_name_is_the_part_before_the_colon(name, module):
    assert module_of(name) == module


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("my_envs", True),
        ("my_envs.sub", True),
        ("my_envs.sub.more", True),
        ("my_envs2", False),
        ("my", False),
        ("other.my_envs", False),
        ("a.b", True),
        ("a", False),
        ("a.bc", False),
    ],
)
def test_a_module_is_allowed_if_it_or_a_package_that_contains_it_is_trusted(module, allowed):
    origin = Origin("run.json", frozenset({"my_envs", "a.b"}))
    assert origin.allows(module) == allowed
    if not allowed:
        with pytest.raises(QuantailError, match=f"run.json names the module {module}: give --trust"):
            import_named(module, origin)


def test_the_error_for_an_untrusted_module_names_the_file_the_module_and_the_flag():
    with pytest.raises(QuantailError) as refused:
        import_named("my_envs", origin_of("runs/x/run.json", ()))
    assert str(refused.value) == (
        "runs/x/run.json names the module my_envs: give --trust my_envs "
        "(or trust=['my_envs'] in Python) if you trust its code."
    )


@pytest.mark.parametrize("module", ["", ".os", "os\x1b[2J", "a b", "../x"])
def test_an_invalid_module_name_is_never_imported_whatever_is_trusted(module):
    with pytest.raises(QuantailError, match="cannot be the name of a module"):
        import_named(module, Origin("run.json", frozenset({"os", module})))


@pytest.mark.parametrize("trust", ["./my_envs.py", ["my_envs:My-v0"], [""], [3]])
def test_trust_takes_names_of_modules(trust):
    with pytest.raises(QuantailError, match="trust takes the name of a module, such as my_envs, not"):
        trusted_modules(trust)


def test_trust_is_one_module_or_several_and_can_be_written_as_flags():
    assert trusted_modules("my_envs") == {"my_envs"}
    assert trust_flags(trusted_modules(["b", "a.c"])) == " --trust a.c --trust b"
    assert trust_flags(()) == ""


def test_the_modules_of_names_that_the_user_gives_are_trusted():
    origin = origin_of("run.json", ["a"], "b:Env-v0", None, print, "cvar:0.1")
    assert origin.trusted == {"a", "b"}
