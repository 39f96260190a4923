#include "attune/cli/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "attune/base/address_space.h"
#include "attune/base/fields.h"
#include "attune/base/interrupt.h"
#include "attune/base/out_of_memory.h"
#include "attune/base/version.h"
#include "attune/cli/command.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

int exit_status = 0;
std::atomic<bool> stop{false};
std::atomic<int> stop_signal{SIGINT};  // the first that was received
std::atomic<int64_t> stop_time{0};     // in nanoseconds, of that signal

// Sets a flag, and ends the program at the second signal; a signal handler may do little else. SIGHUP is never the
// second signal: a terminal that is closed may send it several times. Signals within half a second count as one: a
// launcher passes on a signal that all processes of its job have received already.
void on_signal(int signal) {
  constexpr int64_t kAtOnce = 500'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t nanoseconds = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (!stop.load()) {
    stop_signal = signal;
    stop_time = nanoseconds;
  }
  if (stop.exchange(true) && signal != SIGHUP && nanoseconds - stop_time.load() > kAtOnce) ::_exit(128 + signal);
}

// Starts a thread that does nothing but take SIGINT, SIGHUP and SIGTERM, and blocks them in this thread and in those
// that it starts later. Code that the matrix library generates keeps other numbers in the stack pointer's register: a
// handler that interrupts it writes its frame over other memory. If no thread can be started, signals come to any
// thread.
void take_signals_elsewhere() {
  constexpr size_t kStackBytes = 128 << 10;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const auto wait_forever = [](void*) -> void* {
    for (;;) ::pause();
  };
  const bool started = ::pthread_create(&thread, &attributes, wait_forever, nullptr) == 0;
  ::pthread_attr_destroy(&attributes);
  if (!started) return;
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// Opens /dev/null in place of each standard stream that is closed. Else a file that the program opens would get the
// number of that stream, and what is meant for people would be written to it. Using such a stream stays an error.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) ::_exit(1);
}

// Products are kept where they are made (kernels/cpu/gemm/onednn_matmul.cpp). The library's own cache would keep 1,024
// more of them, which takes a gigabyte of address space. A value that the environment has stays.
void switch_off_second_cache() {
  constexpr int kOverwrite = 0;
  ::setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0", kOverwrite);
}

/// Help that leaves out how many values a list takes: add_texts() sets a number that nobody reaches.
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

// Whether standard output is a pipe that nobody reads any more: a stream does not say why it could not be written.
bool reader_is_gone() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

// The exit status of a command that has written to std::cout and ends with `status`.
int status_after_output(int status) {
  std::cout.flush();
  if (std::cout) return status;
  return reader_is_gone() ? 128 + SIGPIPE : report("cannot write standard output");
}

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

// The long options that take a value, of all commands.
void add_names_with_values(const CLI::App& app, std::set<std::string>& names) {
  for (const CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0)
      for (const std::string& name : option->get_lnames()) names.insert("--" + name);
  for (const CLI::App* command : app.get_subcommands(nullptr)) add_names_with_values(*command, names);
}

// Splits "--name=" into the name and an empty value: CLI11 would take the next word for the value. The word behind an
// option that takes a value, and all words after "--", stay as they are.
std::vector<std::string> with_empty_values(const CLI::App& app, const std::vector<std::string>& words) {
  std::set<std::string> names;
  add_names_with_values(app, names);
  std::vector<std::string> result;
  bool options = true;
  for (const std::string& word : words) {
    const bool is_value = !result.empty() && names.contains(result.back());
    options = options && (is_value || word != "--");
    if (options && !is_value && word.ends_with('=') && names.contains(word.substr(0, word.size() - 1))) {
      result.insert(result.end(), {word.substr(0, word.size() - 1), ""});
    } else {
      result.push_back(word);
    }
  }
  return result;
}

// Makes options refuse values that would be taken for something else. An empty value would count as no option at all.
// CLI11 reads -1 as the largest number without a sign, and what is too large for 64 bits as the largest number.
void check_values(CLI::App& app) {
  const CLI::Validator filled([](const std::string& value) { return value.empty() ? "is empty" : std::string(); }, "");
  const CLI::Validator unsigned_number(
      [](const std::string& value) {
        if (value.starts_with('-')) return fmt::format("{}: needs a number from 0", value);
        errno = 0;
        std::strtoull(value.c_str(), nullptr, 0);
        return errno == ERANGE ? fmt::format("{}: is too large", value) : std::string();
      },
      "");
  const CLI::Validator signed_number(
      [](const std::string& value) {
        errno = 0;
        std::strtoll(value.c_str(), nullptr, 0);
        if (errno != ERANGE) return std::string();
        return fmt::format("{}: is too {}", value, value.starts_with('-') ? "small" : "large");
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    if (takes_any_text(*option)) continue;
    option->check(filled);
    if (option->get_type_name().starts_with("UINT")) option->check(unsigned_number);
    if (option->get_type_name().starts_with("INT")) option->check(signed_number);
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) check_values(*command);
}

}  // namespace

std::string out_of_memory_text(const std::bad_alloc& error) {
  std::string text = "out of memory";
  if (const auto* known = dynamic_cast<const OutOfMemory*>(&error); known != nullptr)
    text += fmt::format(": {} more bytes were needed", known->bytes());
  if (const auto limit = address_space_limit())
    text += fmt::format("; the address space is limited to {} bytes (ulimit -v)", *limit);
  return text + "; smaller batches, shorter texts or fewer threads need less";
}

int report(const std::string& message) {
  write_note(message);
  return 1;
}

const std::atomic<bool>& stop_requested() {
  return stop;
}

int stopped_status() {
  return 128 + stop_signal;
}

// What the shell ignores stays ignored: SIGINT in a job in the background of a script, SIGHUP under nohup.
void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) std::signal(signal, on_signal);
  }
  std::signal(SIGTERM, on_signal);
}

std::string option_beside(const CLI::App& command, const std::vector<std::string>& known) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && std::ranges::find(known, option->get_name()) == known.end()) return option->get_name();
  return "";
}

void refuse_option_beside(const CLI::App& command, const std::vector<std::string>& known, const std::string& what) {
  if (const std::string other = option_beside(command, known); !other.empty())
    fail<ConfigError>("{} is not for {}", other, what);
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      const std::string& examples, Body body) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->footer("Examples:\n" + examples);
  if (body) command->callback([body = std::move(body)] { exit_status = body(); });
  return command;
}

int run(int argc, char** argv) {
  open_standard_streams();
  take_signals_elsewhere();
  switch_off_second_cache();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of the write, so that files are left as they were
  std::signal(SIGXFSZ, SIG_IGN);
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
  add_serve(app);
  add_evaluate(app);
  add_compare(app);
  add_report(app);
  add_inspect(app);
  add_quantize(app);
  add_merge_adapter(app);
  add_export(app);
  add_tokenizer(app);
  add_data(app);
  add_shortlist(app);
  add_bench(app);
  add_draw(app);
  add_demo_corpus(app);
  add_completion(app);
  check_values(app);
  try {
    const std::vector<std::string> words = with_empty_values(app, {argv, argv + argc});
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return status_after_output(exit_status);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return status_after_output(app.exit(error));  // --help, --version
    const std::string unknown = argc > 1 ? explain_unknown(app, argv[1]) : "";
    report(unknown.empty() ? std::string(error.what()) + " (see --help)" : unknown);
    return 2;
  } catch (const Interrupted&) {  // an output file stays as it was
    return stopped_status();
  } catch (const ReaderGone&) {
    return 128 + SIGPIPE;  // what a shell says of a program that the signal ends
  } catch (const std::bad_alloc& error) {
    return report(out_of_memory_text(error));
  } catch (const std::exception& error) {
    return report(error.what());
  }
}

}  // namespace attune::cli
