#pragma once

#include <cstdint>

#include "attune/base/fail.h"
#include "attune/dist/tcp_socket.h"

namespace attune {

/// A port at which nothing listens on the loopback. Another program may take it before it is used.
inline uint16_t free_port() {
  const OpenedSocket opened = listen_at(addresses_of_host("127.0.0.1", 0).at(0));
  if (opened.error != 0) fail<Error>("there is no free port: error {}", opened.error);
  return local_address(opened.socket).port();
}

}  // namespace attune
