"""What all tests share: how hard properties are tried. `--hypothesis-profile=long` tries harder."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "short", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.register_profile("long", settings.get_profile("short"), max_examples=3_000)
settings.load_profile("short")
