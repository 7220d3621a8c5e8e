#include "fake_wire.h"

#include "ipc/packet.h"

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

bool send_with_fds(const Fd& fd, const void* message, std::size_t size, std::span<const int> fds) {
  const auto sent = ipc::send_packet(fd.get(), {static_cast<const std::byte*>(message), size}, fds);
  return sent && *sent == ipc::IoState::kDone;
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
