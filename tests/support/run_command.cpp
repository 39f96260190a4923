#include "tests/support/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "attune/base/error.h"

extern char** environ;

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

/// The two ends of a pipe, closed on exec.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail<Error>("cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  int ends[2] = {-1, -1};
};

/// A program that ends without reading its input must not end the test.
class IgnoredBrokenPipe {
 public:
  IgnoredBrokenPipe() { previous_ = ::signal(SIGPIPE, SIG_IGN); }
  ~IgnoredBrokenPipe() { ::signal(SIGPIPE, previous_); }
  IgnoredBrokenPipe(const IgnoredBrokenPipe&) = delete;
  IgnoredBrokenPipe& operator=(const IgnoredBrokenPipe&) = delete;

 private:
  void (*previous_)(int);
};

pid_t start(const std::vector<std::string>& arguments, const Pipe& input, const Pipe& output, const Pipe& errors) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) fail<Error>("cannot start {}: {}", arguments.at(0), std::strerror(error));
  return process;
}

void read_some(Pipe& pipe, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(pipe.ends[0], buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) pipe.close(0);
}

void write_some(Pipe& pipe, const std::string& text, size_t& written) {
  const ssize_t n = ::write(pipe.ends[1], text.data() + written, text.size() - written);
  if (n > 0) written += static_cast<size_t>(n);
  if (written == text.size() || (n < 0 && errno != EINTR && errno != EAGAIN)) pipe.close(1);
}

/// Feeds and drains the program until it has closed its outputs; false when time ran out.
bool converse(Pipe& input, Pipe& output, Pipe& errors, const CommandOptions& options, CommandResult& result) {
  const auto end = Clock::now() + options.timeout;
  size_t written = 0;
  if (options.input.empty()) input.close(1);
  if (options.close_output) output.close(0);
  while (output.ends[0] >= 0 || errors.ends[0] >= 0) {
    std::array<pollfd, 3> polled = {
        {{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}, {input.ends[1], POLLOUT, 0}}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(polled.data(), polled.size(), static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (polled[0].revents != 0) read_some(output, result.output);
    if (polled[1].revents != 0) read_some(errors, result.errors);
    if (polled[2].revents != 0) write_some(input, options.input, written);
  }
  return true;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  const IgnoredBrokenPipe ignored;
  Pipe input, output, errors;
  ::fcntl(input.ends[1], F_SETFL, O_NONBLOCK);
  const pid_t process = start(arguments, input, output, errors);
  input.close(0);
  output.close(1);
  errors.close(1);
  CommandResult result;
  result.timed_out = !converse(input, output, errors, options, result);
  if (result.timed_out) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace attune
