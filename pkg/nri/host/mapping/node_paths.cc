// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/node_paths.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace resmgr::nri {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

// Cuts off and returns the first part of the path; "" at its end.
std::string TakePart(std::string& path) {
  const size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const size_t end = std::min(path.find('/', begin), path.size());
  std::string part = path.substr(begin, end - begin);
  path.erase(0, end);
  return part;
}

bool HasParent(std::string path) {
  for (std::string part = TakePart(path); !part.empty(); part = TakePart(path))
    if (part == "..") return true;
  return false;
}

std::optional<std::string> ReadLink(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size <= 0 || static_cast<size_t>(size) == target.size()) return std::nullopt;
  return std::string(target.data(), static_cast<size_t>(size));
}

// The path within the mounted file system.
std::string InFileSystem(const MountTable::Mount& mount, std::string_view path) {
  const size_t above = mount.point == "/" ? 0 : mount.point.size();
  const std::string_view below = path == "/" ? std::string_view() : path.substr(above);
  return (mount.root == "/" ? std::string() : mount.root) + std::string(below);
}

}  // namespace

std::string NodeRoot() {
  constexpr const char* kRoot = "/proc/1/root";
  struct stat status = {};
  return ::stat(kRoot, &status) == 0 ? kRoot : "";
}

bool NodePaths::IsNodes(std::string_view path) const {
  if (!options_.root.empty()) return true;
  const MountTable::Mount* const own = options_.own.Find(path);
  const MountTable::Mount* const node = options_.node.Find(path);
  return own != nullptr && node != nullptr && own->major == node->major &&
         own->minor == node->minor && InFileSystem(*own, path) == InFileSystem(*node, path);
}

// Part by part, so that no link is followed from another root than the node's.
std::optional<std::string> NodePaths::Walk(std::string path) const {
  std::string done;  // "" is the root
  int links = 0;
  for (std::string part = TakePart(path); !part.empty(); part = TakePart(path)) {
    if (part == ".") continue;
    if (part == "..") {
      done.erase(std::min(done.rfind('/'), done.size()));
      continue;
    }
    const std::string next = done + "/" + part;
    struct stat status = {};
    if (::lstat((options_.root + next).c_str(), &status) != 0) {
      // The kernel fails here, while runtimes that clean paths textually go on.
      if (errno != ENOENT || HasParent(path) || !IsNodes(done.empty() ? "/" : done)) {
        return std::nullopt;
      }
      std::string rest = std::filesystem::path(next + path).lexically_normal().native();
      if (rest.ends_with('/')) rest.pop_back();
      return rest;
    }
    if (!S_ISLNK(status.st_mode)) {
      done = next;
      continue;
    }
    auto target = ReadLink(options_.root + next);
    if (!target || ++links > kMostLinks || !IsNodes(next)) return std::nullopt;
    if (target->starts_with('/')) done.clear();
    path = *std::move(target) + path;
    if (path.size() > PATH_MAX) return std::nullopt;
  }
  if (done.empty()) done = "/";
  return IsNodes(done) ? std::optional(std::move(done)) : std::nullopt;
}

std::optional<std::string> NodePaths::Resolve(std::string_view path) const {
  if (!path.starts_with('/') || path.size() > PATH_MAX) return std::nullopt;
  const std::string text(path);
  std::optional<std::string> real = Walk(text);
  // CRI-O removes ".." textually, before it looks for links; containerd follows the kernel.
  if (real && HasParent(text) &&
      Walk(std::filesystem::path(text).lexically_normal().native()) != real) {
    return std::nullopt;
  }
  return real;
}

}  // namespace resmgr::nri
