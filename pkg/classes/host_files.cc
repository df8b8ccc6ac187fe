// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_files.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/classes/host_value.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/sys/errno_status.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

// Interrupts of a very large machine.
constexpr size_t kMostNames = 65'536;

// The mask of unbound work as it was written. The other file, which takes it, reads without the
// CPUs of isolated partitions as long as there are some (Linux 6.9).
constexpr std::string_view kWorkMask = "sys/devices/virtual/workqueue/cpumask";
constexpr std::string_view kWrittenWorkMask = "sys/devices/virtual/workqueue/cpumask_requested";

// Any of its sockets, for comparing masks.
constexpr std::string_view kIrqbalance = "run/irqbalance/irqbalance.sock";

// The socket whose list the path stands for.
std::string SocketOfList(const std::string& whole) {
  return whole.substr(0, whole.rfind('/'));
}

bool IsPlainText(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return c == '\n' || c == '\t' || (c >= ' ' && c <= '~'); });
}

}  // namespace

RealHostFiles::RealHostFiles(std::string_view root, std::function<void(std::string_view)> in_hand)
    : root_(root.ends_with('/') ? std::string(root) : std::string(root) + "/"),
      in_hand_(std::move(in_hand)) {}

std::string RealHostFiles::PathOf(const std::string& path) const {
  std::string whole = root_ + path;
  in_hand_(whole);
  return whole;
}

StatusOr<std::string> RealHostFiles::ReadDirectory(const std::string& whole) const {
  struct stat found {};
  if (::stat(whole.c_str(), &found) == 0)
    return S_ISDIR(found.st_mode) ? StatusOr<std::string>(std::string(kThere))
                                  : InvalidArgument("{} is no directory", whole);
  if (errno != ENOENT) return ErrnoStatus(errno, fmt::format("cannot look at {}", whole));
  // Without the directory above it can never be made.
  const std::string parent = whole.substr(0, whole.rfind('/', whole.rfind('/') - 1));
  if (::stat(parent.c_str(), &found) != 0) return NotFound("there is no {}", parent);
  return std::string();
}

StatusOr<std::string> RealHostFiles::ReadSocket(const std::string& whole) {
  const StatusOr<std::string> now = ReadIrqbalance(whole);
  const auto told = told_.find(whole);
  if (!now.ok() || told == told_.end()) return now;
  const bool waits = std::chrono::steady_clock::now() < told->second.until;
  if (waits && !SameHostValue(kIrqbalance, *now, told->second.text)) return told->second.text;
  told_.erase(told);
  return now;
}

int RealHostFiles::WriteSocket(const std::string& whole, std::string_view text) {
  constexpr std::chrono::seconds kRound{30};
  const int error = WriteIrqbalance(whole, text);
  if (error == 0) {
    told_.insert_or_assign(whole,
                           Told{std::string(text), std::chrono::steady_clock::now() + kRound});
  }
  return error;
}

StatusOr<std::string> RealHostFiles::Read(const std::string& path) {
  const std::string whole = PathOf(path);
  if (IsIrqbalanceSocket(path)) return ReadSocket(whole);
  if (IsIrqbalanceList(path)) return ReadIrqbalanceList(SocketOfList(whole));
  if (IsDirectoryPath(path)) return ReadDirectory(whole);
  StatusOr<std::string> text = NotFound("there is no {}", whole);
  if (path == kWorkMask) text = ReadFile(PathOf(std::string(kWrittenWorkMask)), kMostBytes);
  if (!text.ok()) text = ReadFile(whole, kMostBytes);
  if (text.ok() && !IsPlainText(*text)) return InvalidArgument("{} holds no plain text", whole);
  return text;
}

int RealHostFiles::Write(const std::string& path, std::string_view text) {
  std::string whole = PathOf(path);
  if (IsIrqbalanceSocket(path)) return WriteSocket(whole, text);
  if (IsIrqbalanceList(path)) return WriteIrqbalanceList(SocketOfList(whole), text);
  if (IsDirectoryPath(path)) {
    constexpr mode_t kMode = 0755;
    whole.resize(whole.size() - 2);
    const bool make = !Trim(text).empty();
    return (make ? ::mkdir(whole.c_str(), kMode) : ::rmdir(whole.c_str())) == 0 ? 0 : errno;
  }
  // The kernel's own files ignore the truncation.
  const UniqueFd fd(::open(whole.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno;
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode)) return EINVAL;
  // One write is one value.
  ssize_t written = 0;
  do {
    written = ::write(fd.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<size_t>(written) == text.size() ? 0 : EIO;
}

std::vector<std::string> RealHostFiles::List(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(PathOf(directory).c_str()),
                                                   &::closedir);
  if (opened == nullptr) return names;
  while (const dirent* const entry = ::readdir(opened.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    if (names.size() >= kMostNames) break;
  }
  std::ranges::sort(names);
  return names;
}

bool IsDirectoryPath(std::string_view path) {
  return path.ends_with("/.");
}

Status WriteError(int error, std::string_view path, std::string_view text) {
  return ErrnoStatus(error, fmt::format("cannot write {} to {}", Printable(Trim(text), 64), path));
}

}  // namespace resmgr
