"""The verb `models`."""

import json

from ledeline.cli.options import AsJson


def models(as_json: AsJson = False) -> None:
    """List the models that can be named.

    The first is the one that comes with ledeline. The others are packages that pip installed. One
    that cannot be used is listed with the reason. See docs/models.md.
    """
    from ledeline.cli.views.models import model_list, models_as_dicts
    from ledeline.model.format.model_summary import named_models

    found = named_models()
    if as_json:
        print(json.dumps({"models": models_as_dicts(found)}))
        return
    from rich.console import Console

    Console().print(model_list(found), soft_wrap=True)
