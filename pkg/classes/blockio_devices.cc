// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/blockio_devices.h"

#include <algorithm>
#include <memory>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pkg/base/parse.h"
#include "pkg/kube/glob.h"

namespace resmgr {
namespace {

bool IsGlobPart(std::string_view part) {
  return part.find_first_of("*?[") != std::string_view::npos;
}

// Names that begin with a dot match only a pattern that says the dot, as in a shell.
std::vector<std::string> MatchingNames(const std::string& directory, std::string_view pattern) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(directory.c_str()), &::closedir);
  if (opened == nullptr) return names;
  while (const dirent* const entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || (name.starts_with('.') && !pattern.starts_with('.')))
      continue;
    if (MatchesGlob(pattern, name)) names.emplace_back(name);
    if (names.size() >= BlockDevices::kMostDevices) break;
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

HostBlockDevices::HostBlockDevices(std::string_view root)
    : root_(root.substr(0, root.find_last_not_of('/') + 1)) {}

std::vector<FoundDevice> HostBlockDevices::Find(std::string_view glob) {
  std::vector<std::string> paths = {""};
  for (const std::string_view part : Split(glob, '/')) {
    if (part.empty()) continue;
    std::vector<std::string> next;
    for (const std::string& path : paths) {
      if (!IsGlobPart(part)) {
        next.push_back(fmt::format("{}/{}", path, part));
        continue;
      }
      for (const std::string& name : MatchingNames(fmt::format("{}{}/", root_, path), part))
        next.push_back(fmt::format("{}/{}", path, name));
      if (next.size() >= kMostDevices) break;
    }
    paths = std::move(next);
  }
  std::vector<FoundDevice> found;
  for (std::string& path : paths) {
    struct stat file {};
    if (::stat((root_ + path).c_str(), &file) != 0) continue;
    FoundDevice device{.path = std::move(path), .is_block = S_ISBLK(file.st_mode)};
    if (device.is_block) device.number = {major(file.st_rdev), minor(file.st_rdev)};
    found.push_back(std::move(device));
  }
  return found;
}

}  // namespace resmgr
