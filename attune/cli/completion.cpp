// attune completion: what shells offer at the TAB key. Scripts for bash, zsh and fish, made of the commands themselves.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
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

// The paths of all commands, with what stands between two: "/train|/bench|/bench/decode".
std::string all_paths(const std::vector<Place>& places, const char* between) {
  std::vector<std::string> paths;
  for (const Place& p : places)
    if (!p.path.empty()) paths.push_back(p.path);
  return fmt::format("{}", fmt::join(paths, between));
}

// A script: what it begins with, with the paths of all commands in place of {}, a part for each place, and its end.
struct Shell {
  const char* name;
  const char* begin;
  const char* between_paths;
  std::string (*part)(const Place& place);
  const char* end;
};

std::string bash_part(const Place& p) {
  return fmt::format("    '{}') commands='{}' options='{}' ;;\n", p.path, names_of(p.commands), names_of(p.options));
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

std::string zsh_part(const Place& p) {
  return fmt::format("    '{}') commands=({}) options=({}) ;;\n", p.path, zsh_list(p.commands), zsh_list(p.options));
}

std::string fish_part(const Place& p) {
  const std::string begin = fmt::format("complete -c attune -n \"__attune_at '{}'\"", p.path);
  std::string lines;
  for (const Choice& c : p.commands) lines += fmt::format("{} -f -a {} -d '{}'\n", begin, c.name, c.description);
  for (const Choice& c : p.options) lines += fmt::format("{} -l {} -d '{}'\n", begin, c.name.substr(2), c.description);
  return lines;
}

constexpr Shell kShells[] = {
    {.name = "bash",
     .begin = "# bash completion for attune: source it, or put it into /etc/bash_completion.d\n"
              "_attune() {\n"
              "  local word path= commands= options= current=${COMP_WORDS[COMP_CWORD]}\n"
              "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
              "    case $path/$word in {}) path=$path/$word ;; esac\n"
              "  done\n"
              "  case $path in\n",
     .between_paths = "|",
     .part = bash_part,
     .end = "  esac\n"
            "  case $current in\n"
            "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
            "    *) COMPREPLY=($(compgen -W \"$commands\" -- \"$current\")) ;;\n"
            "  esac\n"
            "}\n"
            "complete -o bashdefault -o default -F _attune attune\n"},
    {.name = "zsh",
     .begin = "#compdef attune\n"
              "# zsh completion for attune: put it into a folder of $fpath as _attune\n"
              "_attune() {\n"
              "  local word place=\n"
              "  local -a commands options\n"
              "  for word in ${words[2,CURRENT-1]}; do\n"
              "    case $place/$word in {}) place=$place/$word ;; esac\n"
              "  done\n"
              "  case $place in\n",
     .between_paths = "|",
     .part = zsh_part,
     .end = "  esac\n"
            "  if [[ ${words[CURRENT]} == -* ]]; then _describe option options -o\n"
            "  elif (( $#commands )); then _describe command commands\n"
            "  else _files\n"
            "  fi\n"
            "}\n"
            "if [[ $funcstack[1] == _attune ]]; then _attune \"$@\"; else compdef _attune attune; fi\n"},
    {.name = "fish",
     .begin = "# fish completion for attune: put it into ~/.config/fish/completions/attune.fish\n"
              "function __attune_at\n"
              "    set -l place ''\n"
              "    for word in (commandline -opc)[2..-1]\n"
              "        contains -- \"$place/$word\" {}; and set place \"$place/$word\"\n"
              "    end\n"
              "    test \"$place\" = \"$argv[1]\"\n"
              "end\n",
     .between_paths = " ",
     .part = fish_part,
     .end = ""}};

std::string script_of(const Shell& shell, const std::vector<Place>& places) {
  constexpr std::string_view kPaths = "{}";
  std::string script = shell.begin;
  const size_t paths = script.find(kPaths);
  script.replace(paths, kPaths.size(), all_paths(places, shell.between_paths));
  for (const Place& p : places) script += shell.part(p);
  return script + shell.end;
}

}  // namespace

void add_completion(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = add_command(app, "completion", "Write the completion script for a shell",
                                  "  source <(attune completion bash)\n"
                                  "  attune completion zsh > ~/.zfunc/_attune\n"
                                  "  attune completion fish > ~/.config/fish/completions/attune.fish",
                                  [name, &app] {
                                    std::vector<Place> places;
                                    add_places(app, "", places);
                                    TextOutput output;
                                    output.write(script_of(*std::ranges::find(kShells, *name, &Shell::name), places));
                                    output.finish();
                                    return 0;
                                  });
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  command->add_option("shell", *name, "bash, zsh or fish")->required()->check(CLI::IsMember(names));
}

}  // namespace attune::cli
