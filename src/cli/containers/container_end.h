// Ends a container that outlives the engine's command that started it. Nothing else would end the
// container: its parent is the engine, not that command.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <vector>

namespace gpurota::cli {

class ContainerEnd {
 public:
  // `engine` is the engine and the options before its subcommand. `id_file`: the user's own file to
  // which the engine writes the container's id; empty: a file in a new folder.
  static Result<std::unique_ptr<ContainerEnd>> make(std::vector<std::string> engine,
                                                    std::string id_file);
  ~ContainerEnd();  // removes the folder
  ContainerEnd(const ContainerEnd&) = delete;
  ContainerEnd& operator=(const ContainerEnd&) = delete;

  // For --cidfile. The file does not exist until the engine has made the container.
  const std::string& id_file() const { return id_file_; }
  // Makes the engine kill the container, if there is one. Does nothing if the user's file existed
  // before: then the engine makes no container, and the id in the file is another container's.
  // Waits for the engine, some seconds at most.
  void kill() const;

 private:
  ContainerEnd(std::vector<std::string> engine, std::string id_file, std::string folder)
      : engine_(std::move(engine)), id_file_(std::move(id_file)), folder_(std::move(folder)) {}

  std::vector<std::string> engine_;
  std::string id_file_;
  std::string folder_;   // empty: the file is the user's own
  bool is_old_ = false;  // the file existed before
};

}  // namespace gpurota::cli
