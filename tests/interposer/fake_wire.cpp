#include "fake_wire.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

namespace gpurota::interposer_test {

Fd listen_at(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return Fd();
  ::listen(fd.get(), 64);
  return fd;
}

namespace {

constexpr std::size_t kMostFds = 64;

}  // namespace

bool send_with_fds(const Fd& fd, const void* message, std::size_t size, std::span<const int> fds) {
  iovec part{const_cast<void*>(message), size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFds * sizeof(int))] = {};
  msghdr out{};
  out.msg_iov = &part;
  out.msg_iovlen = 1;
  out.msg_control = control;
  out.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* c = CMSG_FIRSTHDR(&out);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  return ::sendmsg(fd.get(), &out, MSG_NOSIGNAL) > 0;
}

gpurota_page* make_page(const std::vector<FakeGpu>& gpus, Fd* fd) {
  *fd = Fd(::memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(fd->get(), GPUROTA_PAGE_BYTES) != 0) return nullptr;
  ::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* memory =
      ::mmap(nullptr, GPUROTA_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* page = static_cast<gpurota_page*>(memory);
  page->magic = GPUROTA_PAGE_MAGIC;
  page->version = GPUROTA_PAGE_VERSION;
  page->slots = static_cast<std::uint32_t>(gpus.size());
  page->size = sizeof(gpurota_page);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::memcpy(page->grant[i].uuid, gpus[i].uuid.data(), GPUROTA_UUID_BYTES);
  }
  return page;
}

}  // namespace gpurota::interposer_test
