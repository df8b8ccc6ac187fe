// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_files_config.h"

#include <algorithm>
#include <filesystem>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// Bytes; the limit of a Linux path, with room for the file's name.
constexpr size_t kLongestPath = 4000;

bool IsBelow(std::string_view path, std::string_view directory) {
  return path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

}  // namespace

Status CheckMountPath(std::string_view path) {
  const std::string shown = Printable(path, 64);
  if (!path.starts_with('/') || path.size() > kLongestPath ||
      std::filesystem::path(path).lexically_normal().native() != path || path.ends_with('/')) {
    return InvalidArgument(
        "\"{}\" is not an absolute path of a directory, in its shortest form and below /", shown);
  }
  const bool strange =
      std::ranges::any_of(path, [](char c) { return c == ':' || c == ',' || c < ' ' || c == 127; });
  if (strange) return InvalidArgument("\"{}\" has a character that mounts cannot have", shown);
  for (const std::string_view reserved : {"/dev", "/proc", "/sys"}) {
    if (IsBelow(path, reserved))
      return InvalidArgument("\"{}\" is in {}, where the kernel's own files are", shown, reserved);
  }
  return OkStatus();
}

void DescribeCpuFiles(ConfigSection& root, CpuFilesConfig& config) {
  using enum CpuFilesConfig::Containers;
  root.Map("cpuFiles", [&config](ConfigSection& files) {
    files.Choice("Containers", {{"none", kNone}, {"annotated", kAnnotated}, {"all", kAll}},
                 config.containers,
                 "the containers that get a file with their CPUs when they are created");
    files.Text("MountPath", config.mount_path, "the directory of the file in the container",
               CheckMountPath);
  });
}

}  // namespace resmgr
