// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// Finds the mount that holds a path, from the text of /proc/PID/mountinfo (proc(5)) alone: no file
// system is asked, so that a dead one delays nothing. A value.
class MountTable {
 public:
  struct Mount {
    int id = 0;
    int parent = 0;
    unsigned major = 0;  // 0: on no device
    unsigned minor = 0;
    std::string root;   // the part of the file system that is mounted
    std::string point;  // below our root
    std::string type;   // of the file system: "ext4"
  };

  // Lines that cannot be read are left out.
  explicit MountTable(std::string_view mountinfo);

  // The mount that the kernel finds if no part of the path is a symbolic link: from the root down,
  // what was mounted last upon each. The path is absolute, without empty parts, "." and "..".
  // nullptr: no mount holds it. Valid as long as the table.
  const Mount* Find(std::string_view path) const;
  // A mount that a recursive bind mount of the path brings along: it is mounted on the mount that
  // holds the path, below the path. nullptr: there is none.
  const Mount* FindBelow(std::string_view path) const;
  // Whether a file system of this type is mounted anywhere.
  bool HasType(std::string_view type) const;

 private:
  std::vector<Mount> mounts_;
};

// Whether `path` is `directory` or below it.
bool IsAtOrBelow(std::string_view path, std::string_view directory);

}  // namespace resmgr
