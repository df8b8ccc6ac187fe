// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/mount_table.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// The next word of the line; "" at its end.
std::string_view NextWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// The kernel writes space, tab, line break and backslash as \ooo.
std::string Unescape(std::string_view text) {
  constexpr size_t kDigits = 3;
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view digits = text.substr(i + 1, kDigits);
    const bool octal = digits.size() == kDigits &&
                       std::all_of(digits.begin(), digits.end(),
                                   [](char digit) { return digit >= '0' && digit <= '7'; });
    if (text[i] != '\\' || !octal) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0');
    i += kDigits;
  }
  return plain;
}

// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"
std::optional<MountTable::Mount> ParseMount(std::string_view line) {
  const auto id = ParseInt(NextWord(line));
  const auto parent = ParseInt(NextWord(line));
  const std::string_view device = NextWord(line);
  const size_t colon = device.find(':');
  if (!id || !parent || colon == std::string_view::npos) return std::nullopt;
  const auto major = ParseUint(device.substr(0, colon));
  const auto minor = ParseUint(device.substr(colon + 1));
  MountTable::Mount mount;
  mount.root = Unescape(NextWord(line));
  mount.point = Unescape(NextWord(line));
  if (!major || !minor || !mount.point.starts_with('/')) return std::nullopt;
  std::string_view word = NextWord(line);
  while (word != "-" && !line.empty())
    word = NextWord(line);
  mount.type = NextWord(line);
  mount.id = static_cast<int>(*id);
  mount.parent = static_cast<int>(*parent);
  mount.major = static_cast<unsigned>(*major);
  mount.minor = static_cast<unsigned>(*minor);
  return mount;
}

}  // namespace

bool IsAtOrBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

MountTable::MountTable(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    if (auto mount = ParseMount(mountinfo.substr(0, end))) mounts_.push_back(*std::move(mount));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
  }
}

const MountTable::Mount* MountTable::Find(std::string_view path) const {
  const auto known = [this](int id) {
    return std::any_of(mounts_.begin(), mounts_.end(),
                       [id](const Mount& mount) { return mount.id == id; });
  };
  // The top is a mount upon one that we do not see.
  const Mount* here = nullptr;
  for (const Mount& mount : mounts_) {
    const bool top = mount.parent == mount.id || !known(mount.parent);
    if (top && IsAtOrBelow(path, mount.point) &&
        (here == nullptr || mount.point.size() >= here->point.size())) {
      here = &mount;
    }
  }
  // On the way down the first mount that is met hides what was mounted further below before it.
  for (size_t steps = 0; here != nullptr && steps < mounts_.size(); ++steps) {
    const Mount* next = nullptr;
    for (const Mount& mount : mounts_) {
      if (mount.parent != here->id || mount.id == here->id || !IsAtOrBelow(path, mount.point))
        continue;
      if (next == nullptr || mount.point.size() < next->point.size()) next = &mount;
    }
    if (next == nullptr) return here;
    here = next;
  }
  return here;
}

const MountTable::Mount* MountTable::FindBelow(std::string_view path) const {
  const Mount* const holder = Find(path);
  if (holder == nullptr) return nullptr;
  const auto found = std::ranges::find_if(mounts_, [&](const Mount& mount) {
    return mount.parent == holder->id && mount.id != holder->id && mount.point != path &&
           IsAtOrBelow(mount.point, path);
  });
  return found == mounts_.end() ? nullptr : &*found;
}

bool MountTable::HasType(std::string_view type) const {
  return std::ranges::any_of(mounts_, [type](const Mount& mount) { return mount.type == type; });
}

}  // namespace resmgr
