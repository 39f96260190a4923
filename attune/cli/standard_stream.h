#pragma once

#include <string_view>

namespace attune::cli {

/// Writes a text to standard output or standard error (their numbers in unistd.h) or to a pipe. Waits while nobody
/// reads, until stop_requested(). PIPE_BUF bytes stay together. Returns 0, ECANCELED where it was stopped while it
/// waited, or else what write() says (errno).
int write_to_stream(int stream, std::string_view text);

/// Writes a text to standard error. Nobody can be told of a failure.
void write_to_standard_error(std::string_view text);

}  // namespace attune::cli
