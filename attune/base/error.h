#pragma once
// The errors that Attune throws. A message names what was expected, what was found, and where.

#include <stdexcept>
#include <string>

namespace [[gnu::visibility("default")]] attune {

/// Base class of every error that Attune throws. `what()` is one line without a trailing full stop.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes or dtypes of an operation's inputs do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A configuration is not valid: names the field and the value.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read, written or understood: names the file.
class FileError : public Error {
 public:
  using Error::Error;
};

/// Text or token data that cannot be used: names file and line where there is one.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A number is not finite where it must be: names step and tensor.
class NumericError : public Error {
 public:
  using Error::Error;
};

/// Another process of the run cannot be reached or has failed: names the call.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

}  // namespace attune
