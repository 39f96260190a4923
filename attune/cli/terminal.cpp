#include "attune/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "attune/cli/standard_stream.h"
#include "attune/cli/text_output.h"

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr std::string_view erase_line = "\r\x1b[K";  // ECMA-48: back to the first column, erase to the right

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace

Terminal::Terminal() : interactive_(is_terminal()) {}

Terminal::~Terminal() {
  clear();
}

int Terminal::columns() const {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* variable = std::getenv("COLUMNS");
  const std::string_view text = variable == nullptr ? "" : variable;
  int columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return error == std::errc() && end == text.data() + text.size() && columns > 0 ? columns : 80;
}

void Terminal::progress(const ProgressState& state, bool log_now) {
  const std::lock_guard lock(mutex_);
  if (!interactive_) {
    if (log_now) cli::write_to_standard_error(format_progress_line(state) + "\n");
    return;
  }
  const auto now = Clock::now();
  state_ = state;
  if (shown_ && now < next_draw_) return;
  next_draw_ = now + redraw_interval;
  shown_ = true;
  // The last column stays free: some terminals go to the next line as soon as it is written.
  cli::write_to_standard_error(std::string(erase_line) + format_progress(state_, columns() - 1));
}

void Terminal::message(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string output = shown_ ? std::string(erase_line) : "";
  output += cli::one_line(text);
  output += '\n';
  if (shown_) output += format_progress(state_, columns() - 1);
  cli::write_to_standard_error(output);
}

void Terminal::clear() {
  const std::lock_guard lock(mutex_);
  if (shown_) cli::write_to_standard_error(erase_line);
  shown_ = false;
}

}  // namespace attune
