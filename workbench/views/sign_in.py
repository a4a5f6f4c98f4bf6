"""The sign-in page."""

from django.contrib.auth.views import LoginView


class SignInView(LoginView):
    """Django's own view under our template; somebody already signed in goes on."""

    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True
