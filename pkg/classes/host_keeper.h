// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_journal.h"
#include "pkg/classes/host_files.h"

namespace resmgr {

// The outcome for one file.
struct HostOutcome {
  Status status{};
  int error = 0;         // error number of a refused or cancelled write; 0: none
  std::string in_force;  // what the file reads, trimmed
};

// A file of the host that does not have its wanted value. A value type.
struct HostDifference {
  std::string path{};
  std::string wanted{};
  std::string now{};     // "": it cannot be read
  std::string unread{};  // why it cannot be read

  friend bool operator==(const HostDifference&, const HostDifference&) = default;
};

// Gives the host's files the wanted values, and restores the former ones when these are no longer
// wanted. Every value is in the journal, with the former one, before it is written. If another
// program has written a file meanwhile, the file is written again while its value is wanted, and
// left alone when it would be restored. A pod's CPU quota is restored to what that program (the
// kubelet) wrote last. May block. Thread-compatible.
class HostKeeper {
 public:
  struct Result {
    std::map<std::string, HostOutcome, std::less<>> outcomes{};  // by path, of all wanted values
    std::vector<std::string> notes{};                            // for the log, limited in number
    // Files that could not be restored yet, and why.
    std::map<std::string, std::string, std::less<>> not_given_back{};
    // Files of CPUs that are offline: they are restored when these are back.
    std::set<std::string, std::less<>> waiting{};
    Status journal{};  // why nothing new is written
  };

  // Both must outlive this object.
  HostKeeper(HostFiles& files, ClassJournal& journal) : files_(files), journal_(journal) {}

  Result Keep(const std::vector<HostValue>& wanted);
  // Only reads. Values that the kernel has refused for good do not count as differences.
  std::vector<HostDifference> Compare(const std::vector<HostValue>& wanted);
  // The value that the file had before this daemon's first write, or its present value if there was
  // none.
  StatusOr<std::string> ReadFirst(const std::string& path);
  // Whether the journal has the file: it has a value of this daemon, or is about to get one.
  bool Holds(const std::string& path) const { return journal_.entries().contains(path); }
  // The values of this daemon whose paths begin with this text, to keep them if a plan cannot be
  // made at the moment.
  std::vector<HostValue> HeldBelow(std::string_view directory) const;
  // The wanted value of a limit in a container's cgroup. If the file has this value before the
  // first write, the runtime may have set it at creation: then the file is restored to the value of
  // a new cgroup, and not to the one that was found. `requested`: the value that
  // the runtime would have set without the class.
  HostValue LimitOf(std::string path, std::string text,
                    std::optional<std::string_view> requested = std::nullopt);
  HostFiles& files() { return files_; }

 private:
  // The files to restore, in order: partitions before the CPUs that they take, cgroups before their
  // parents, and clocks so that the kernel takes each value.
  std::vector<std::string> NotWanted(const std::vector<HostValue>& wanted);
  bool GoesFirst(const std::string& path);
  bool IsOfOfflineCpu(std::string_view path);
  // Restores the file. Returns whether its entry can be dropped.
  bool GiveBack(const std::string& path, const JournalEntry& entry, Result& result);
  void GiveBackRest(const std::vector<HostValue>& wanted, ClassJournal::Entries& next,
                    Result& result);
  // The state of one call.
  struct Batch {
    Result result{};
    ClassJournal::Entries next{};
    std::map<std::string, std::string, std::less<>> before{};  // former texts, by path
    std::vector<const HostValue*> written{};                   // in this order
    std::map<std::string, Status, std::less<>> failed{};  // refused groups, by HostValue::together
  };
  using Values = std::vector<const HostValue*>;

  // The values that must be written.
  Values Prepare(const Values& wanted, Batch& batch);
  // Writes the values. Returns whether this may have changed others: a directory was made, whose
  // files can be written now, or monitoring groups have lost their CPUs.
  bool WriteAll(const Values& wanted, Batch& batch);
  void Write(const HostValue& value, Batch& batch);
  void RollBack(const HostValue& refused, Batch& batch);
  // Updates the journal's entries by the outcome of the write.
  static void NoteWritten(const HostValue& value, const HostOutcome& outcome,
                          ClassJournal::Entries& next);
  bool Refused(const HostValue& value, HostOutcome& outcome) const;

  HostFiles& files_;
  ClassJournal& journal_;
  // Affinities that the kernel refuses for good, with the error.
  std::map<std::string, std::pair<std::string, int>, std::less<>> refused_;
  // Values that were in force when last seen.
  std::map<std::string, std::string, std::less<>> seen_;
};

// EPERM and EIO: the kernel manages the interrupt itself and refuses other affinities.
bool IsManaged(int error);

}  // namespace resmgr
