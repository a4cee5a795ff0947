"""Implement `toolserver completion`: print the script that makes a shell complete commands, tools and arguments.

The command line library writes the scripts. They ask this program for what may follow.
"""

import click
from click.shell_completion import get_completion_class

PROGRAMS = ("toolserver", "agent-toolserver")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what completes commands, tools and arguments in a shell.

    \b
    bash  eval "$(toolserver completion bash)"         in ~/.bashrc
    zsh   eval "$(toolserver completion zsh)"          in ~/.zshrc, after compinit
    fish  toolserver completion fish | source          in ~/.config/fish/config.fish
    """
    root = ctx.find_root()
    name = root.info_name if root.info_name in PROGRAMS else PROGRAMS[0]
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    script = get_completion_class(shell)
    if script is None:
        raise click.ClickException(f"there is no completion for {shell}")
    click.echo(script(root.command, {}, name, variable).source())
