#pragma once

#include <cstdint>
#include <string>

namespace attune {

/// What a process knows of a run in which the ranks talk over TCP.
struct TcpRun {
  int rank = 0, size = 1;
  std::string address;           // of the machine of rank 0: a name or a number
  uint16_t port = 29500;         // at which rank 0 listens
  std::string token;             // that all processes of the run have been given
  double seconds = 300;          // for all to come
  double greeting_seconds = 10;  // for one, from its connection to its greeting, and to the answer
};

}  // namespace attune
