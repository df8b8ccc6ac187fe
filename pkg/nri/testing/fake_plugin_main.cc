// SPDX-License-Identifier: Apache-2.0
// A plugin process that a host starts. Prints its variables and open files, answers everything, and
// ends itself at a container that is called "die".
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "pkg/nri/testing/fake_plugin.h"

namespace {

namespace api = resmgr::nri::test::api;

void PrintSurroundings() {
  std::string text = "variables";
  for (char** each = environ; *each != nullptr; ++each)
    text.append(" ").append(*each);
  std::vector<std::string> files;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    files.push_back(each.path().filename().string());
  std::sort(files.begin(), files.end());
  text.append("; files");
  for (const std::string& file : files)
    text.append(" ").append(file);
  std::cout << text << std::endl;
}

}  // namespace

int main(int argc, char** /*argv*/) {
  constexpr int kSocket = 3;
  if (argc != 1) return 2;
  PrintSurroundings();
  ::fcntl(kSocket, F_SETFL, O_NONBLOCK);
  resmgr::EventLoop loop;
  resmgr::nri::test::FakePlugin plugin(loop, resmgr::UniqueFd(kSocket));
  plugin.create = [](const api::CreateContainerRequest& request)
      -> resmgr::StatusOr<api::CreateContainerResponse> {
    if (request.container().name() == "die") std::_Exit(3);
    return api::CreateContainerResponse();
  };
  const auto lost = loop.Every(std::chrono::milliseconds(5), [&] {
    if (plugin.lost) loop.Stop();
  });
  loop.Run();
  return 0;
}
