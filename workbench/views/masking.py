"""The masking rules of the installation: the list, the box to try them in, and a rule with its form."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import masking as masking_actions
from evolution.actors import Role
from evolution.errors import LoopError
from evolution.loop.masking import Masker, MaskingError, Rule, current_masker
from evolution.queries import masking as masking_queries
from workbench.access import Request, actor_of, told
from workbench.forms import MaskingRuleForm, MaskingTextForm, first_error, read_form
from workbench.rendering import render_page


@require_safe
def masking(request: Request) -> HttpResponse:
    """List the rules."""
    return render_page(request, "masking.html", {"lines": masking_queries.list_rules()})


@require_POST
def try_text(request: Request) -> HttpResponse:
    """Show what the rules in force make of a text; nothing of it is kept."""
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
    form = MaskingTextForm(request.POST)
    context = {"lines": masking_queries.list_rules(), "text": request.POST.get("text", "")}
    try:
        if form.is_valid():
            context["marked"] = masking_queries.mark_text(current_masker(), form.cleaned_data["text"])
        else:
            context["problem"] = first_error(form)
    except MaskingError as error:
        context["problem"] = str(error)
    return _unkept(render_page(request, "masking.html", context))


@require_safe
def masking_rule(request: Request, name: str) -> HttpResponse:
    """Show a rule and the form that changes it, empty for a new one."""
    line = masking_queries.find_rule(name)
    if line is None and name != "new":
        raise Http404
    return render_page(request, "masking_rule.html", {"line": line, "rule": line.rule if line else None})


@require_POST
def save(request: Request, name: str) -> HttpResponse:
    """Keep the rule, or try it on the newest cases, as the button says."""
    with told(request):
        actor_of(request).require(Role.OPERATOR)
    form = MaskingRuleForm(request.POST)
    if "try" in request.POST:
        return _try_rule(request, name, form)
    saved = None
    with told(request, _("The rule is saved; it counts for what is imported from now on.")):
        rule = _rule(name, form)
        saved = masking_actions.save_rule(actor_of(request), rule, is_enabled=form.cleaned_data["is_enabled"])
    if saved:
        return redirect("masking")
    return _show_form(request, name, form)


def _try_rule(request: Request, name: str, form: MaskingRuleForm) -> HttpResponse:
    context: dict[str, object] = {}
    try:
        rule = _rule(name, form)
        masking_actions.check_rule(rule)
        context["trial"] = masking_queries.try_on_cases(Masker([rule]))
    except (LoopError, MaskingError) as error:
        context["problem"] = str(error)
    return _unkept(_show_form(request, name, form, **context))


def _show_form(request: Request, name: str, form: MaskingRuleForm, **context: object) -> HttpResponse:
    """The rule as it was sent."""
    sent = {key: form.data.get(key, "") for key in ("label", "pattern", "description")}
    rule = Rule(
        name if name != "new" else form.data.get("name", ""), **sent, is_secret="is_secret" in form.data
    )
    context |= {"line": masking_queries.find_rule(name), "rule": rule, "sent": form.data}
    return render_page(request, "masking_rule.html", context)


def _rule(name: str, form: MaskingRuleForm) -> Rule:
    fields = read_form(form)
    own_name = fields["name"] if name == "new" else name
    if name == "new" and masking_queries.find_rule(own_name):
        raise LoopError(_("there is a masking rule %(name)s already") % {"name": own_name})
    return Rule(own_name, fields["label"], fields["pattern"], fields["description"], fields["is_secret"])


@require_POST
def switch(request: Request, name: str) -> HttpResponse:
    """Switch a rule on or off."""
    with told(request):
        masking_actions.set_rule_enabled(actor_of(request), name, is_enabled="on" in request.POST)
    return redirect("masking")


@require_POST
def restore(request: Request, name: str) -> HttpResponse:
    """Take a rule as it ships, or people's own away."""
    with told(request, _("The rule is as it ships, or gone where it did not ship.")):
        masking_actions.restore_rule(actor_of(request), name)
    return redirect("masking")


def _unkept(response: HttpResponse) -> HttpResponse:
    """What may show something that is to be masked stays in no cache."""
    response.headers["Cache-Control"] = "no-store"
    return response
