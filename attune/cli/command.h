#pragma once
// A subcommand of the binary: it adds its options to the command line, and runs when it was chosen.

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/fields.h"

namespace attune::cli {

/// What a subcommand's body returns: 0, or the exit status of a run that ended early.
using Body = std::function<int()>;

/// Adds a subcommand whose help ends with `examples`, one to a line. Errors thrown by `body` become one line on stderr.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      const std::string& examples, Body body);

void add_train(CLI::App& app);
void add_translate(CLI::App& app);
void add_generate(CLI::App& app);
void add_classify(CLI::App& app);
void add_embed(CLI::App& app);
void add_serve(CLI::App& app);
void add_compare(CLI::App& app);
void add_report(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_inspect(CLI::App& app);
void add_export(CLI::App& app);
void add_quantize(CLI::App& app);
void add_merge_adapter(CLI::App& app);
void add_shortlist(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_data(CLI::App& app);
void add_bench(CLI::App& app);
void add_bench_attention(CLI::App& bench);
void add_bench_decode(CLI::App& bench);
void add_bench_machine(CLI::App& bench);
void add_bench_linear(CLI::App& bench);
void add_bench_reduce(CLI::App& bench);
void add_bench_requests(CLI::App& bench);
void add_draw(CLI::App& app);
void add_demo_corpus(CLI::App& app);
void add_completion(CLI::App& app);

/// The value of an enumeration by its name. Throws ConfigError naming the option and all names.
template <NamedEnum E>
E named(const std::string& option, const std::string& name) {
  std::string known;
  for (const auto& [value, candidate] : EnumNames<E>::values) {
    if (name == candidate) return value;
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  fail<ConfigError>("{} {}: needs one of {}", option, name, known);
}

/// Returns the name of the first option that the command line has and that is not in `known` ("--json", "model"); "":
/// there is none.
std::string option_beside(const CLI::App& command, const std::vector<std::string>& known);
/// Throws ConfigError "OPTION is not for WHAT" where option_beside() returns one.
void refuse_option_beside(const CLI::App& command, const std::vector<std::string>& known, const std::string& what);

/// Prints "attune: <message>" on stderr, on one line even if a hostile file has put line breaks into it. Returns the
/// exit status 1.
int report(const std::string& message);

/// What is said when memory is short: how much was asked for, and the limit where there is one.
std::string out_of_memory_text(const std::bad_alloc& error);

/// True once Ctrl-C, SIGTERM or SIGHUP was received. A second Ctrl-C or SIGTERM, half a second later or more, ends the
/// program at once.
const std::atomic<bool>& stop_requested();
/// The exit status of a command that a signal has stopped: 128 plus the signal's number, 130 for Ctrl-C.
int stopped_status();
/// Lets signals set stop_requested() instead of ending the program. SIGINT and SIGHUP stay ignored where they are, as
/// in a script's background job or under nohup.
void catch_stop_signals();

}  // namespace attune::cli
