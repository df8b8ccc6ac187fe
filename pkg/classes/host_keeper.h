// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
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
  int error = 0;         // of a refused write
  std::string in_force;  // what the file reads, without white space around it
};

// A file of the host with another value than the wanted one. A value.
struct HostDifference {
  std::string path{};
  std::string wanted{};
  std::string now{};     // "": it cannot be read
  std::string unread{};  // why it cannot be read

  friend bool operator==(const HostDifference&, const HostDifference&) = default;
};

// Gives the host's files the wanted values, and their former ones back when these are no longer
// wanted. Every value is in the journal before it is written. A file that another program has
// written meanwhile is left alone when it is to be given back, and written again while its value is
// wanted; a pod's CPU quota then gets back what that program (the kubelet) wrote last. May block.
// Thread-compatible.
class HostKeeper {
 public:
  struct Result {
    std::map<std::string, HostOutcome, std::less<>> outcomes{};  // by path, of all wanted ones
    std::vector<std::string> notes{};                            // for the log, not many
    // Files whose first value could not be given back yet, and why.
    std::map<std::string, std::string, std::less<>> not_given_back{};
    Status journal{};  // why nothing new is written
  };

  // Both must outlive this object.
  HostKeeper(HostFiles& files, ClassJournal& journal) : files_(files), journal_(journal) {}

  Result Keep(const std::vector<HostValue>& wanted);
  // Only reads. Values that the kernel has refused for good do not count as differences.
  std::vector<HostDifference> Compare(const std::vector<HostValue>& wanted);
  // The value that the file had before our first write, or has now if we never wrote it.
  StatusOr<std::string> ReadFirst(const std::string& path);
  // Whether the file has a value of ours.
  bool Holds(const std::string& path) const { return journal_.entries().contains(path); }
  // Our values whose paths begin with this text, for a plan that cannot be made at the moment and
  // keeps the present values.
  std::vector<HostValue> HeldBelow(std::string_view directory) const;
  // The wanted value of a limit in a container's cgroup. If the file has it already before our
  // first write, the runtime may have set it at the creation: the file then gets back the value of
  // a fresh cgroup in the end, and not the one that was found.
  HostValue LimitOf(std::string path, std::string text);
  HostFiles& files() { return files_; }

 private:
  // The files to give back, in order: partitions before the CPUs that they take, cgroups before
  // their parents, and clocks so that the kernel takes each.
  std::vector<std::string> NotWanted(const std::vector<HostValue>& wanted);
  bool GoesFirst(const std::string& path);
  // Whether the entry can be dropped.
  bool GiveBack(const std::string& path, const JournalEntry& entry, Result& result);
  void GiveBackRest(const std::vector<HostValue>& wanted, ClassJournal::Entries& next,
                    Result& result);
  // The state of one call.
  struct Batch {
    Result result{};
    ClassJournal::Entries next{};
    std::map<std::string, std::string, std::less<>> before{};  // texts of the files to be written
    std::vector<const HostValue*> written{};                   // in this order
    std::map<std::string, Status, std::less<>> failed{};       // HostValue::together
  };
  using Values = std::vector<const HostValue*>;

  // The values that must be written.
  Values Prepare(const Values& wanted, Batch& batch);
  // Whether a directory was made, whose files can be written now.
  bool WriteAll(const Values& wanted, Batch& batch);
  void Write(const HostValue& value, Batch& batch);
  void RollBack(const HostValue& refused, Batch& batch);
  Status Refusal(int error, std::string_view path, std::string_view text);
  // Enters the outcome of the write for the journal.
  static void NoteWritten(const HostValue& value, const HostOutcome& outcome,
                          ClassJournal::Entries& next);
  bool Refused(const HostValue& value, HostOutcome& outcome) const;

  HostFiles& files_;
  ClassJournal& journal_;
  // Affinities that the kernel will never take, and its answer.
  std::map<std::string, std::pair<std::string, int>, std::less<>> refused_;
  // Values that were in force when last seen.
  std::map<std::string, std::string, std::less<>> seen_;
};

// EPERM and EIO: how kernels answer for interrupts that they manage themselves.
bool IsManaged(int error);

}  // namespace resmgr
