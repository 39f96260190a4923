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
  double seconds = 300;          // for all ranks to connect
  double greeting_seconds = 10;  // for a new connection to bring its greeting, or to get the answer
};

}  // namespace attune
