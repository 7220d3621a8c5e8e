// main() of a fuzz target built without libFuzzer: runs the target on every file of the corpus, on
// each prefix of the file's first kilobyte, and on the file with one byte changed, for each byte of
// that kilobyte. Deterministic; fails if the corpus is empty.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void feed(const std::string& input) {
  // A copy of exactly this size, so that the address sanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  (void)LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void feed_variants(std::string input) {
  feed(input);
  const std::size_t reach = std::min<std::size_t>(input.size(), 1024);
  for (std::size_t i = 0; i < reach; ++i) feed(input.substr(0, i));
  for (std::size_t i = 0; i < reach; ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      input[i] = static_cast<char>(input[i] ^ flip);
      feed(input);
      input[i] = static_cast<char>(input[i] ^ flip);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream content;
      content << file.rdbuf();
      feed_variants(content.str());
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
