// attune completion: what shells offer at the TAB key. Scripts for bash, zsh and fish, made of the commands themselves.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "attune/cli/command.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

struct Choice {
  std::string name, description;
};

// A command with what may follow its name. The path of `attune bench decode` is "/bench/decode", that of attune "".
struct Place {
  std::string path;
  std::vector<Choice> commands, options;
};

// The first line of a help text, without characters that mean something within quotes of a shell.
std::string plain_line(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  std::erase_if(line, [](char c) { return c == '\'' || c == '"' || c == '\\' || c == '`' || c == '$'; });
  return line;
}

void add_places(const CLI::App& command, const std::string& path, std::vector<Place>& places) {
  Place place{.path = path, .commands = {}, .options = {}};
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      place.options.push_back({"--" + name, plain_line(option->get_description())});
  const std::vector<const CLI::App*> inner = command.get_subcommands(nullptr);
  for (const CLI::App* c : inner) place.commands.push_back({c->get_name(), plain_line(c->get_description())});
  places.push_back(std::move(place));
  for (const CLI::App* c : inner) add_places(*c, path + "/" + c->get_name(), places);
}

std::string names_of(const std::vector<Choice>& choices) {
  std::vector<std::string> names;
  for (const Choice& c : choices) names.push_back(c.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// The pattern of a shell's `case` for all commands: "/train|/bench|/bench/decode".
std::string all_paths(const std::vector<Place>& places) {
  std::vector<std::string> paths;
  for (const Place& p : places)
    if (!p.path.empty()) paths.push_back(p.path);
  return fmt::format("{}", fmt::join(paths, "|"));
}

std::string bash_script(const std::vector<Place>& places) {
  std::string script =
      "# bash completion for attune: source it, or put it into /etc/bash_completion.d\n"
      "_attune() {\n"
      "  local word path= commands= options= current=${COMP_WORDS[COMP_CWORD]}\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case $path/$word in " +
      all_paths(places) +
      ") path=$path/$word ;; esac\n"
      "  done\n"
      "  case $path in\n";
  for (const Place& p : places)
    script +=
        fmt::format("    '{}') commands='{}' options='{}' ;;\n", p.path, names_of(p.commands), names_of(p.options));
  return script +
         "  esac\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$commands\" -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o bashdefault -o default -F _attune attune\n";
}

std::string zsh_list(const std::vector<Choice>& choices) {
  std::string list;
  for (const Choice& c : choices) {
    std::string description;
    for (const char letter : c.description) description += letter == ':' ? std::string("\\:") : std::string(1, letter);
    list += fmt::format(" '{}:{}'", c.name, description);
  }
  return list;
}

std::string zsh_script(const std::vector<Place>& places) {
  std::string script =
      "#compdef attune\n"
      "# zsh completion for attune: put it into a folder of $fpath as _attune\n"
      "_attune() {\n"
      "  local word place=\n"
      "  local -a commands options\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case $place/$word in " +
      all_paths(places) +
      ") place=$place/$word ;; esac\n"
      "  done\n"
      "  case $place in\n";
  for (const Place& p : places)
    script +=
        fmt::format("    '{}') commands=({}) options=({}) ;;\n", p.path, zsh_list(p.commands), zsh_list(p.options));
  return script +
         "  esac\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then _describe option options -o\n"
         "  elif (( $#commands )); then _describe command commands\n"
         "  else _files\n"
         "  fi\n"
         "}\n"
         "if [[ $funcstack[1] == _attune ]]; then _attune \"$@\"; else compdef _attune attune; fi\n";
}

std::string fish_script(const std::vector<Place>& places) {
  std::string script =
      "# fish completion for attune: put it into ~/.config/fish/completions/attune.fish\n"
      "function __attune_at\n"
      "    set -l place ''\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        contains -- \"$place/$word\"";
  for (const Place& p : places)
    if (!p.path.empty()) script += " " + p.path;
  script +=
      "; and set place \"$place/$word\"\n"
      "    end\n"
      "    test \"$place\" = \"$argv[1]\"\n"
      "end\n";
  for (const Place& p : places) {
    const std::string begin = fmt::format("complete -c attune -n \"__attune_at '{}'\"", p.path);
    for (const Choice& c : p.commands) script += fmt::format("{} -f -a {} -d '{}'\n", begin, c.name, c.description);
    for (const Choice& c : p.options)
      script += fmt::format("{} -l {} -d '{}'\n", begin, c.name.substr(2), c.description);
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = add_command(app, "completion", "Write the script for a shell's TAB key",
                                  "  source <(attune completion bash)\n"
                                  "  attune completion zsh > ~/.zfunc/_attune\n"
                                  "  attune completion fish > ~/.config/fish/completions/attune.fish",
                                  [shell, &app] {
                                    std::vector<Place> places;
                                    add_places(app, "", places);
                                    TextOutput output;
                                    if (*shell == "bash") output.write(bash_script(places));
                                    if (*shell == "zsh") output.write(zsh_script(places));
                                    if (*shell == "fish") output.write(fish_script(places));
                                    output.finish();
                                    return 0;
                                  });
  command->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace attune::cli
