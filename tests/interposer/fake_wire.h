// How the fake daemons listen, send, and make pages.
#pragma once

#include "base/fd.h"
#include "fake_daemon.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace gpurota::interposer_test {

Fd listen_at(const std::string& path);
bool send_with_fds(const Fd& fd, const void* message, std::size_t size, std::span<const int> fds);
gpurota_page* make_page(const std::vector<FakeGpu>& gpus, Fd* fd);

template <typename Message>
bool parse(const unsigned char* packet, long size, Message* out) {
  if (size < static_cast<long>(sizeof(Message))) return false;
  std::memcpy(out, packet, sizeof(Message));
  return true;
}

template <typename Message>
bool send_plain(const Fd& fd, const Message& message) {
  return ::send(fd.get(), &message, sizeof(message), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(message));
}

}  // namespace gpurota::interposer_test
