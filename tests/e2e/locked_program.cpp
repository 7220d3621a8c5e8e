// A program that uses a GPU and then holds the lock of its own address space: locked_program FOLDER
//
// The program serves a file system of its own (FUSE, in a user namespace) at FOLDER. Mapping one of
// its files makes the kernel write back dirty data under that lock, and the server never answers.
// Prints "server PID" and, when the lock is held, "held". The lock is released when the server
// ends: when it is killed, or after kLongest. Until then readers of the program's
// /proc/PID/cmdline, such as ps, block. Exit code 77: not possible on this system.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr unsigned kLongest = 30;  // seconds
constexpr std::uint64_t kFile = 2;
constexpr std::uint64_t kFileBytes = 1 << 20;

[[noreturn]] void give_up(const char* what) {
  std::printf("cannot: %s: %s\n", what, std::strerror(errno));
  std::exit(77);
}

void write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) give_up(path);
  ::close(fd);
}

void reply(int fuse, std::uint64_t unique, int error, const void* body, std::size_t size) {
  std::array<char, 1 << 17> buffer;
  fuse_out_header header{};
  header.unique = unique;
  header.error = error;
  header.len = static_cast<std::uint32_t>(sizeof header + size);
  std::memcpy(buffer.data(), &header, sizeof header);
  if (size != 0) std::memcpy(buffer.data() + sizeof header, body, size);
  (void)!::write(fuse, buffer.data(), header.len);
}

fuse_attr attributes(std::uint64_t node) {
  fuse_attr attr{};
  attr.ino = node;
  attr.nlink = 1;
  attr.mode = node == kFile ? S_IFREG | 0644 : S_IFDIR | 0755;
  attr.size = node == kFile ? kFileBytes : 0;
  attr.blksize = 4096;
  return attr;
}

void answer(int fuse, const fuse_in_header& header, const void* body) {
  static int opened = 0;
  static const std::array<char, 1 << 16> kZeros{};
  switch (header.opcode) {
    case FUSE_INIT: {
      fuse_init_out out{};
      out.major = 7;
      out.minor = 31;
      out.max_write = 65536;
      out.max_readahead = 4096;
      return reply(fuse, header.unique, 0, &out, sizeof out);
    }
    case FUSE_LOOKUP: {
      fuse_entry_out out{};
      out.nodeid = kFile;
      out.entry_valid = out.attr_valid = 3600;
      out.attr = attributes(kFile);
      return reply(fuse, header.unique, 0, &out, sizeof out);
    }
    case FUSE_GETATTR: {
      fuse_attr_out out{};
      out.attr_valid = 3600;
      out.attr = attributes(header.nodeid);
      return reply(fuse, header.unique, 0, &out, sizeof out);
    }
    case FUSE_OPEN: {
      // The second open bypasses the cache, so dirty data in the cache must be written first.
      fuse_open_out out{};
      out.open_flags = ++opened == 1 ? FOPEN_KEEP_CACHE : FOPEN_DIRECT_IO;
      return reply(fuse, header.unique, 0, &out, sizeof out);
    }
    case FUSE_READ: {
      fuse_read_in in;
      std::memcpy(&in, body, sizeof in);
      return reply(fuse, header.unique, 0, kZeros.data(),
                   in.size < kZeros.size() ? in.size : kZeros.size());
    }
    case FUSE_WRITE:
      std::puts("held");
      return;
    case FUSE_FORGET:
    case FUSE_INTERRUPT:
      return;
    default:
      return reply(fuse, header.unique, -ENOSYS, nullptr, 0);
  }
}

[[noreturn]] void serve(int fuse) {
  ::alarm(kLongest);
  std::printf("server %d\n", ::getpid());
  static std::array<char, 1 << 18> buffer;
  for (;;) {
    const ssize_t size = ::read(fuse, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) ::_exit(0);
    fuse_in_header header;
    std::memcpy(&header, buffer.data(), sizeof header);
    answer(fuse, header, buffer.data() + sizeof header);
  }
}

// Mounts the file system and starts its server.
void mount_at(const char* folder) {
  const uid_t uid = ::getuid();
  const gid_t gid = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) give_up("unshare");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
  write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
  // Opened in this namespace, because the kernel requires the opener and the mounter to be in the
  // same namespace.
  const int fuse = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (fuse < 0) give_up("/dev/fuse");
  const std::string options = "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0";
  if (::mount("locked", folder, "fuse", MS_NODEV | MS_NOSUID, options.c_str()) != 0) {
    give_up("mount");
  }
  const pid_t parent = ::getpid();
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    serve(fuse);
  }
  ::close(fuse);
}

void use_gpu() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) give_up("libcuda.so.1");
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto retain =
      reinterpret_cast<int (*)(void**, int)>(::dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set_current = reinterpret_cast<int (*)(void*)>(::dlsym(driver, "cuCtxSetCurrent"));
  const auto allocate =
      reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(::dlsym(driver, "cuMemAlloc_v2"));
  void* context = nullptr;
  std::uint64_t memory = 0;
  if (init(0) != 0 || retain(&context, 0) != 0 || set_current(context) != 0 ||
      allocate(&memory, std::size_t{64} << 20) != 0) {
    give_up("CUDA");
  }
}

// Does not return while the server lives.
void hold_lock(const std::string& file) {
  const int cached = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  const int direct = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, cached, 0);
  if (cached < 0 || direct < 0 || page == MAP_FAILED) give_up("mmap");
  *static_cast<volatile char*>(page) = 1;
  (void)::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, direct, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IONBF, 0);
  mount_at(argv[1]);
  use_gpu();
  hold_lock(std::string(argv[1]) + "/file");
  std::puts("let go");
  for (;;) ::pause();
}
