// A temporary directory of a test, removed with its content when the test ends.
#pragma once

#include <string>

namespace gpurota::testing {

class TempDir {
 public:
  TempDir();  // below $TMPDIR or /tmp; aborts the test program if that is impossible
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Prepare and check what the code under test reads and writes; abort on failure.
void write_file(const std::string& path, const std::string& content);
std::string read_file(const std::string& path);

}  // namespace gpurota::testing
