// attune: trains and runs Transformers.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>

#include "attune/base/fields.h"
#include "attune/base/version.h"
#include "attune/cli/command.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

int exit_status = 0;
std::atomic<bool> stop{false};

// Only what a signal handler may do: set a flag, and leave at the second signal.
void on_signal(int signal) {
  if (stop.exchange(true)) ::_exit(128 + signal);
}

/// add_texts() has a list end at a number of values that nobody gives and that help need not tell.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (!is_list(option)) return CLI::Formatter::make_option_opts(option);
    return " " + option->get_type_name() + " ...";
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    if (!is_list(option)) return CLI::Formatter::make_option_usage(option);
    return "[" + make_option_name(option, true) + "...]";
  }

 private:
  static bool is_list(const CLI::Option* option) { return option->get_expected_min() > 1 << 20; }
};

// What is wrong with a word that stands where a subcommand is expected, or "".
std::string explain_unknown(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == word) return "";
    names.push_back(command->get_name());
  }
  if (word.empty() || word.starts_with("-")) return "";
  const std::string near = nearest_name(word, names);
  return fmt::format("unknown command \"{}\"", word) +
         (near.empty() ? " (see --help)" : fmt::format(", did you mean \"{}\"?", near));
}

}  // namespace

int report(std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  std::cerr << "attune: " + message + "\n";
  return 1;
}

const std::atomic<bool>& stop_requested() {
  return stop;
}

void catch_stop_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      const std::string& examples, Body body) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->footer("Examples:\n" + examples);
  if (body) command->callback([body = std::move(body)] { exit_status = body(); });
  return command;
}

int run(int argc, char** argv) {
  CLI::App app{"Attune trains and runs Transformers: translation, language models and classifiers, without Python."};
  app.name("attune");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "attune " + std::string(version()));
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  attune train examples/demo.toml --out runs/demo\n"
      "  attune translate runs/demo/model \"The old dog sleeps in the garden.\"\n"
      "  attune COMMAND --help");
  add_train(app);
  add_translate(app);
  add_generate(app);
  add_classify(app);
  add_embed(app);
  add_evaluate(app);
  add_inspect(app);
  add_quantize(app);
  add_tokenizer(app);
  add_data(app);
  add_shortlist(app);
  add_bench(app);
  add_draw(app);
  add_demo_corpus(app);
  try {
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return report("cannot write standard output");
    return exit_status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::string unknown = argc > 1 ? explain_unknown(app, argv[1]) : "";
    report(unknown.empty() ? std::string(error.what()) + " (see --help)" : unknown);
    return 2;
  } catch (const ReaderGone&) {
    return 128 + SIGPIPE;  // what a shell says of a program that the signal ends
  } catch (const std::bad_alloc&) {
    return report("out of memory");
  } catch (const std::exception& error) {
    return report(error.what());
  }
}

}  // namespace attune::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, so that files are left as they were
  std::signal(SIGXFSZ, SIG_IGN);
  return attune::cli::run(argc, argv);
}
