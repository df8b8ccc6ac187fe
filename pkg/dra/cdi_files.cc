// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/cdi_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "pkg/claims/claim_names.h"
#include "pkg/dra/cdi_spec.h"
#include "pkg/sys/errno_status.h"
#include "pkg/sys/files.h"

namespace resmgr::dra {
namespace {

namespace fs = std::filesystem;

// For work that is under way when the daemon ends.
constexpr std::chrono::milliseconds kEndPatience{1000};
constexpr mode_t kSpecMode = 0644;  // runtimes need not run as root
// Entries of the directory that are looked at: it is not ours alone.
constexpr size_t kMostEntries = 65'536;

Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), fmt::format("cannot make {}", directory));
  return OkStatus();
}

Status WriteSpec(const std::string& directory, std::string_view kind, const std::string& uid,
                 const CpuSet& cpus) {
  RESMGR_RETURN_IF_ERROR(MakeDirectory(directory));
  return AtomicWriteFile(directory + "/" + CdiFileName(kind, uid), CdiSpec(kind, uid, cpus),
                         kSpecMode);
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return ErrnoStatus(errno, fmt::format("cannot remove {}", path));
}

Status RemoveSpecs(const std::string& directory, const std::string& uid) {
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind})
    RESMGR_RETURN_IF_ERROR(RemoveFile(directory + "/" + CdiFileName(kind, uid)));
  return OkStatus();
}

// The claims that have files, whose names are returned by UID.
StatusOr<std::vector<std::pair<std::string, std::string>>> OwnFiles(const std::string& directory) {
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  size_t seen = 0;
  for (; !error && at != fs::directory_iterator() && seen < kMostEntries; at.increment(error)) {
    ++seen;
    const std::string name = at->path().filename().string();
    if (std::optional<std::string> uid = UidOfCdiFile(name)) files.emplace_back(*uid, name);
  }
  if (error && error.value() != ENOENT)
    return ErrnoStatus(error.value(), fmt::format("cannot list {}", directory));
  return files;
}

// Files of other content are written again.
Status ReconcileSpec(const std::string& directory, std::string_view kind, const ClaimGrant& grant) {
  const std::string text = CdiSpec(kind, grant.uid, grant.All());
  const StatusOr<std::string> kept =
      ReadFile(directory + "/" + CdiFileName(kind, grant.uid), text.size() + 1);
  if (kept.ok() && *kept == text) return OkStatus();
  return WriteSpec(directory, kind, grant.uid, grant.All());
}

Status ReconcileSpecs(const std::string& directory, std::string_view kind,
                      const std::vector<ClaimGrant>& held, CdiFiles::Others others) {
  RESMGR_ASSIGN_OR_RETURN(const auto files, OwnFiles(directory));
  std::set<std::string> names;
  for (const auto& [uid, name] : files) {
    const bool is_held =
        std::ranges::any_of(held, [&uid = uid](const ClaimGrant& one) { return one.uid == uid; });
    if (is_held) {
      names.insert(name);
    } else if (others == CdiFiles::Others::kRemove) {
      RESMGR_RETURN_IF_ERROR(RemoveFile(directory + "/" + name));
    }
  }
  for (const ClaimGrant& grant : held) {
    // No container can be created on a claim that has lost all.
    if (grant.All().empty()) continue;
    bool has = false;
    for (const std::string_view one : {kClaimKind, kCompatibleClaimKind}) {
      if (!names.contains(CdiFileName(one, grant.uid))) continue;
      has = true;
      RESMGR_RETURN_IF_ERROR(ReconcileSpec(directory, one, grant));
    }
    if (!has) RESMGR_RETURN_IF_ERROR(WriteSpec(directory, kind, grant.uid, grant.All()));
  }
  return OkStatus();
}

}  // namespace

StatusOr<CdiFile> FindCdiFile(const std::string& directory, std::string_view uid) {
  StatusOr<CdiFile> found = NotFound("there is no file of claim {} in {}", uid, directory);
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind}) {
    const std::string path = fmt::format("{}/{}", directory, CdiFileName(kind, uid));
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) continue;
    const auto since = std::chrono::seconds(facts.st_mtim.tv_sec) +
                       std::chrono::nanoseconds(facts.st_mtim.tv_nsec);
    const std::chrono::system_clock::time_point written{
        std::chrono::duration_cast<std::chrono::system_clock::duration>(since)};
    if (!found.ok() || found->written < written) found = CdiFile{.path = path, .written = written};
  }
  return found;
}

CdiFiles::CdiFiles(Options options)
    : options_(std::move(options)), off_loop_(options_.loop, "cdi-files", kEndPatience) {}

void CdiFiles::Write(std::string_view kind, const std::string& uid, const CpuSet& cpus, Done done) {
  Add([directory = options_.directory, kind = std::string(kind), uid,
       cpus] { return ReconcileSpec(directory, kind, {.uid = uid, .cpus = {cpus}}); },
      std::move(done));
}

void CdiFiles::Remove(const std::string& uid, Done done) {
  Add([directory = options_.directory, uid] { return RemoveSpecs(directory, uid); },
      std::move(done));
}

void CdiFiles::Reconcile(std::string_view kind, std::vector<ClaimGrant> held, Others others,
                         Done done) {
  Add([directory = options_.directory, kind = std::string(kind), held = std::move(held),
       others] { return ReconcileSpecs(directory, kind, held, others); },
      std::move(done));
}

void CdiFiles::Add(std::function<Status()> work, Done done) {
  const bool full = orders_.size() >= kMostWaiting;
  const auto order = orders_.insert(
      orders_.end(), Order{.work = full ? nullptr : std::move(work), .done = std::move(done)});
  order->deadline = options_.loop.After(full ? std::chrono::milliseconds(0) : options_.deadline,
                                        [this, order] { Late(order); });
  Begin();
}

void CdiFiles::Begin() {
  if (under_way_ || orders_.empty() || orders_.front().work == nullptr) return;
  under_way_ = true;
  const Status begun = off_loop_.Run([this, work = orders_.front().work]() -> EventLoop::Task {
    const Status status = work();
    return [this, status] { Ended(status); };
  });
  if (begun.ok()) return;
  // The next turn of the loop tells it: callers may not expect an answer yet.
  orders_.front().deadline =
      options_.loop.After(std::chrono::milliseconds(0), [this, begun] { Ended(begun); });
}

void CdiFiles::Ended(const Status& status) {
  under_way_ = false;
  const Order order = std::move(orders_.front());
  orders_.pop_front();
  Begin();
  if (order.done) order.done(status);
}

// The order under way keeps its place, so that nothing overtakes it.
void CdiFiles::Late(std::list<Order>::iterator order) {
  const Done done = std::exchange(order->done, nullptr);
  const bool refused = order->work == nullptr;
  const bool first = under_way_ && order == orders_.begin();
  if (!first) orders_.erase(order);
  Begin();
  done(refused ? ResourceExhausted("too many files of claims wait for {}", options_.directory)
               : DeadlineExceeded("{} has not answered for {} ms", options_.directory,
                                  options_.deadline.count()));
}

}  // namespace resmgr::dra
