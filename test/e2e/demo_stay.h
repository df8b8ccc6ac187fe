// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "test/e2e/node.h"

namespace resmgr::test {

// Keeps a node running until Ctrl-C, and creates and removes the pods that lines written to a named
// pipe ask for, from a second terminal. Thread-compatible.
class DemoStay {
 public:
  // `directory` is the node's own, with its admin socket.
  DemoStay(Node& node, std::filesystem::path directory)
      : node_(node), directory_(std::move(directory)) {}

  // Creates a shared pod and one with a CPU of its own, prints the commands for the second
  // terminal, and returns after SIGINT or SIGTERM.
  Status Run();

 private:
  std::filesystem::path Pipe() const { return directory_ / "pods"; }
  void PrintCommands() const;
  Status Serve(int pipe);
  // "create NAME [CPUS]" or "remove NAME"; prints the result.
  void Do(std::string_view line);
  Status Create(const std::string& name, int cpus);
  Status Remove(const std::string& name);

  Node& node_;
  const std::filesystem::path directory_;
  std::vector<RunningPod> pods_;
};

}  // namespace resmgr::test
