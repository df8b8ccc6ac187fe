// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/dra/claim_metadata.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/files.h"
#include "pkg/sys/off_loop.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr::dra {

// The file of a claim, and when it was written. A file with the right content is not written again,
// so this is the time when the claim was prepared.
struct CdiFile {
  std::string path{};
  std::chrono::system_clock::time_point written{};
};
// Finds the file of a claim, of either kind; the newer one if there are two. NotFound: there is
// none. Blocks.
StatusOr<CdiFile> FindCdiFile(const std::string& directory, std::string_view uid);

// The content of the files of a claim.
struct ClaimFacts {
  ClaimGrant grant{};
  Claim claim{};  // for device metadata; a claim without parts gets none
};
// The files that claims get.
struct ClaimForm {
  std::string kind{};     // of the CDI device
  bool metadata = false;  // device metadata (claim_metadata.h), too
};

// Keeps the files of claims, away from the loop and one after the other, so that the last order for
// a claim is the one that stays. Files of others are never touched. Loop's thread only.
class CdiFiles {
 public:
  struct Options {
    EventLoop& loop;
    std::string directory{};  // of CDI files; made when it is missing
    // The directory of device metadata, by its path here and by its path for runtimes; made when it
    // is needed.
    std::string metadata{};
    std::string metadata_on_host{};
    // An order that takes longer is answered with kDeadlineExceeded; its work may still be done.
    std::chrono::milliseconds deadline{10'000};
    WriteFileFunction write = AtomicWriteFile;  // called on another thread
  };
  // OK: it is done, also after a power failure. kDeadlineExceeded: it may be done later; a removal
  // will be, which also undoes a write that hung before it. kResourceExhausted: too many orders
  // wait. Never runs within the call, nor after this object's end.
  using Done = std::function<void(Status)>;

  // Orders that wait, at most.
  static constexpr size_t kMostWaiting = 1024;

  explicit CdiFiles(Options options);

  // Writes the files of a claim, with the CPUs that its containers see. Files that are right stay
  // as they are.
  void Write(const ClaimForm& form, const ClaimFacts& claim, Done done);
  // Removes the files of a claim; OK if it has none.
  void Remove(const std::string& uid, Done done);
  // Whether files of claims that are not in `held` are removed. After a loss of the saved state
  // they are kept, since the state may have held more claims.
  enum class Others { kRemove, kKeep };
  // Removes the files of claims that are not held (Others). Writes files that held claims lack, or
  // that name other CPUs than the claim holds. A file of the other kind stays: the kubelet names it
  // when it restarts a container. Metadata that claims have already stays, too.
  void Reconcile(const ClaimForm& form, std::vector<ClaimFacts> held, Others others, Done done);
  // Whether a removal failed or was refused, so that a Reconcile has to follow.
  bool owes() const { return debts_ != settled_; }

 private:
  struct Order {
    std::function<Status()> work{};  // runs on another thread
    Done done{};
    bool removes = false;
    std::optional<uint64_t> settles{};  // debts that its success settles
    EventLoop::HandlePtr deadline{};
  };

  ClaimDisk Disk() const;
  void Add(Order order);
  void Begin();
  void Ended(const Status& status);
  void Late(std::list<Order>::iterator order);

  const Options options_;
  std::list<Order> orders_;  // the first one is under way
  bool under_way_ = false;
  uint64_t debts_ = 0;  // number of removals that failed, ever
  uint64_t settled_ = 0;
  OffLoop off_loop_;
};

// The file that describes the CDI device of a claim to runtimes (cdi spec 0.5.0): one file for each
// claim, since a runtime does not read a device again that it knows already. Pure functions;
// IsClaimUid must accept `uid`.

// The version of CDI that the files state, and the extension of their names.
inline constexpr std::string_view kCdiVersion = "0.5.0";
inline constexpr std::string_view kCdiExtension = ".json";

// The UID between the prefix and the end in the name of a file, also of a file that is being
// written; nullopt for other names.
std::optional<std::string> UidInFileName(std::string_view prefix, std::string_view file_name);

// JSON: the device gives containers the variable with the claim's CPUs.
std::string CdiSpec(std::string_view kind, std::string_view uid, const CpuSet& cpus);

// "dra.k8s.io-cpu_claim-UID.json".
std::string CdiFileName(std::string_view kind, std::string_view uid);

// The UID in a name that CdiFileName makes, of either kind, also of a file that is being written;
// nullopt for other files.
std::optional<std::string> UidOfCdiFile(std::string_view file_name);

}  // namespace resmgr::dra
