// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/cpu_files_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"

namespace resmgr {
namespace {

using Containers = CpuFilesConfig::Containers;

constexpr std::array<std::pair<std::string_view, Containers>, 3> kContainers = {{
    {"none", Containers::kNone},
    {"annotated", Containers::kAnnotated},
    {"all", Containers::kAll},
}};

// Bytes; the limit of a Linux path, with room for the file's name.
constexpr size_t kLongestPath = 4000;

bool IsBelow(std::string_view path, std::string_view directory) {
  return path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

StatusOr<Containers> ContainersOf(std::string_view text) {
  const auto* const found =
      std::ranges::find(kContainers, text, [](const auto& entry) { return entry.first; });
  if (found != kContainers.end()) return found->second;
  return InvalidArgument("\"{}\" is not one of none, annotated, all{}", Printable(text, 64),
                         DidYouMean(text, {"none", "annotated", "all"}));
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

void ReadCpuFiles(MapReader& files, CpuFilesConfig& config) {
  files.Parse("Containers", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.containers, ContainersOf(text));
    return OkStatus();
  });
  files.Parse("MountPath", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_RETURN_IF_ERROR(CheckMountPath(text));
    config.mount_path = text;
    return OkStatus();
  });
}

ConfigNode CpuFilesNode(const CpuFilesConfig& config) {
  const auto* const name = std::ranges::find(kContainers, config.containers,
                                             [](const auto& entry) { return entry.second; });
  return MapNode({{"Containers", 1, ScalarNode(std::string(name->first))},
                  {"MountPath", 1, ScalarNode(config.mount_path)}});
}

}  // namespace resmgr
