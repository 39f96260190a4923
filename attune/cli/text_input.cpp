#include "attune/cli/text_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "attune/base/fail.h"

namespace attune::cli {
namespace {

constexpr size_t chunk_lines = 512;           // read ahead, so that texts of similar length can share a batch
constexpr const char* kAnyText = "any text";  // marks options whose values are not interpreted
constexpr int patience_ms = 20;               // wait for more input before what has come is answered

CLI::callback_t take_into(std::vector<std::string>& texts) {
  return [&texts](const CLI::results_t& arguments) {
    texts = arguments;
    return true;
  };
}

}  // namespace

void add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
               const std::string& description) {
  // allow_extra_args(false) turns the reading of brackets off, and also ends the list at its least number of values. So
  // that number is very large; with TakeAll, CLI11 does not check that the list reaches it.
  take_any_text(*command.add_option(name, take_into(texts), description)
                     ->type_name("TEXT")
                     ->expected(CLI::detail::expected_max_vector_size / 2, CLI::detail::expected_max_vector_size)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                     ->allow_extra_args(false));
}

void add_repeated_text(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
                       const std::string& description) {
  take_any_text(*command.add_option(name, take_into(texts), description)
                     ->type_name("TEXT")
                     ->expected(1)
                     ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                     ->allow_extra_args(false));
}

void take_any_text(CLI::Option& option) {
  option.check([](const std::string&) { return std::string(); }, "", kAnyText);
}

bool takes_any_text(CLI::Option& option) {
  try {
    option.get_validator(kAnyText);
    return true;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

std::string place_of_text(const std::vector<std::string>& texts, size_t index) {
  std::string place = fmt::format("text {} of the command line", index + 1);
  check_utf8(texts[index], place);
  return place;
}

InputLines::InputLines(std::vector<std::string> arguments, const std::string& file) : arguments_(std::move(arguments)) {
  if (!file.empty() && !arguments_.empty())
    fail<ConfigError>("text as arguments and --file {} at once: give one of them", file);
  if (!file.empty()) {
    reader_.emplace(std::filesystem::path(file));
  } else if (arguments_.empty()) {
    reader_.emplace(STDIN_FILENO, "standard input");
    live_ = true;
  }
}

std::vector<std::string> InputLines::read_lines(bool wait) {
  if (error_) std::rethrow_exception(error_);
  std::vector<std::string> lines;
  places_.clear();
  try {
    std::string line;
    while (lines.size() < chunk_lines && ((wait && lines.empty()) || more_at_hand(wait ? patience_ms : 0)) &&
           read(line))
      lines.push_back(line);
  } catch (const Error&) {
    if (lines.empty()) throw;
    error_ = std::current_exception();
  }
  return lines;
}

bool InputLines::read(std::string& line) {
  try {
    return read_next(line);
  } catch (const DataError& error) {
    if (!tell_) throw;
    tell_(error.what());
    line.clear();
    places_.emplace_back();
    return true;
  }
}

bool InputLines::read_next(std::string& line) {
  if (reader_) {
    if (!reader_->next(line)) return false;
    places_.push_back(fmt::format("{}:{}", reader_->name(), reader_->line_number()));
    return true;
  }
  if (taken_ == arguments_.size()) return false;
  line = arguments_[taken_];
  const size_t index = taken_++;
  places_.push_back(place_of_text(arguments_, index));
  return true;
}

bool InputLines::more_at_hand(int patience) {
  return !live_ || reader_->at_hand(patience);
}

int64_t count_lines(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return 0;
  try {
    LineReader reader{std::filesystem::path(file)};
    for (std::string line; reader.next(line);) continue;
    return reader.line_number();
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace attune::cli
