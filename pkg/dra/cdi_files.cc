// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/cdi_files.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "pkg/base/json.h"
#include "pkg/claims/claim_names.h"
#include "pkg/dra/claim_metadata.h"
#include "pkg/sys/files.h"

namespace resmgr::dra {
namespace {

namespace fs = std::filesystem;

// How long the end of the daemon waits for file operations under way.
constexpr std::chrono::milliseconds kEndPatience{1000};
constexpr mode_t kSpecMode = 0644;  // runtimes need not run as root
// Limit of directory entries that are looked at, since others write to the directory, too.
constexpr size_t kMostEntries = 65'536;

Status RemoveFiles(const ClaimDisk& disk, const std::string& uid) {
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind})
    RESMGR_RETURN_IF_ERROR(RemoveClaimFile(disk.cdi + "/" + CdiFileName(kind, uid)));
  return HasMetadata(disk, uid) ? RemoveMetadata(disk, uid) : OkStatus();
}

// Names of the files of claims, by UID.
struct ClaimFileNames {
  std::map<std::string, std::set<std::string>> specs{};
  std::set<std::string> metadata{};  // claims that have metadata files
};

StatusOr<ClaimFileNames> OwnFiles(const ClaimDisk& disk) {
  ClaimFileNames names;
  std::error_code error;
  fs::directory_iterator at(disk.cdi, error);
  size_t seen = 0;
  for (; !error && at != fs::directory_iterator() && seen < kMostEntries; at.increment(error)) {
    ++seen;
    const std::string name = at->path().filename().string();
    if (const auto uid = UidOfCdiFile(name)) names.specs[*uid].insert(name);
    if (const auto uid = UidOfMetadataCdiFile(name)) names.metadata.insert(*uid);
  }
  if (error && error.value() != ENOENT)
    return ErrnoStatus(error.value(), fmt::format("cannot list {}", disk.cdi));
  RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> uids, ClaimsWithMetadata(disk));
  names.metadata.insert(uids.begin(), uids.end());
  return names;
}

// Writes the file if it is missing or has other content.
Status WriteSpec(const ClaimDisk& disk, std::string_view kind, const ClaimGrant& grant) {
  const std::string text = CdiSpec(kind, grant.uid, grant.Seen());
  const std::string path = disk.cdi + "/" + CdiFileName(kind, grant.uid);
  const StatusOr<std::string> kept = ReadFile(path, text.size() + 1);
  if (kept.ok() && *kept == text) return OkStatus();
  RESMGR_RETURN_IF_ERROR(MakeClaimDirectory(disk.cdi));
  return disk.write(path, text, kSpecMode);
}

// Renews the CDI files that the claim has, of either kind; if it has none, writes one of the form's
// kind. Metadata is written if the claim has some or the form asks for it.
Status WriteFiles(const ClaimDisk& disk, const ClaimForm& form, const ClaimFacts& claim,
                  const ClaimFileNames& names) {
  const std::string& uid = claim.grant.uid;
  bool has = false;
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind}) {
    const auto specs = names.specs.find(uid);
    if (specs == names.specs.end() || !specs->second.contains(CdiFileName(kind, uid))) continue;
    has = true;
    RESMGR_RETURN_IF_ERROR(WriteSpec(disk, kind, claim.grant));
  }
  if (!has) RESMGR_RETURN_IF_ERROR(WriteSpec(disk, form.kind, claim.grant));
  const bool metadata = form.metadata || names.metadata.contains(uid);
  if (!metadata || claim.claim.parts.empty()) return OkStatus();
  return WriteMetadata(disk, claim.claim, claim.grant);
}

Status RemoveOthers(const ClaimDisk& disk, const ClaimFileNames& names,
                    const std::set<std::string>& held) {
  for (const auto& [uid, specs] : names.specs) {
    if (held.contains(uid)) continue;
    for (const std::string& name : specs)
      RESMGR_RETURN_IF_ERROR(RemoveClaimFile(disk.cdi + "/" + name));
  }
  for (const std::string& uid : names.metadata)
    if (!held.contains(uid)) RESMGR_RETURN_IF_ERROR(RemoveMetadata(disk, uid));
  return OkStatus();
}

Status ReconcileFiles(const ClaimDisk& disk, const ClaimForm& form,
                      const std::vector<ClaimFacts>& held, CdiFiles::Others others) {
  RESMGR_ASSIGN_OR_RETURN(const ClaimFileNames names, OwnFiles(disk));
  std::set<std::string> uids;
  for (const ClaimFacts& claim : held)
    uids.insert(claim.grant.uid);
  if (others == CdiFiles::Others::kRemove) RESMGR_RETURN_IF_ERROR(RemoveOthers(disk, names, uids));
  for (const ClaimFacts& claim : held) {
    // A claim that has lost all CPUs gets no files: no container can be created on it.
    if (claim.grant.All().empty()) continue;
    RESMGR_RETURN_IF_ERROR(WriteFiles(disk, form, claim, names));
  }
  return OkStatus();
}

constexpr std::string_view kTemporary = ".tmp";  // of AtomicWriteFile

// The part of a name before the UID.
std::string FilePrefix(std::string_view kind) {
  std::string prefix(kind);
  std::ranges::replace(prefix, '/', '-');
  return prefix + "_" + ClaimDeviceName("");
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

ClaimDisk CdiFiles::Disk() const {
  return {.cdi = options_.directory,
          .metadata = options_.metadata,
          .metadata_on_host = options_.metadata_on_host,
          .write = options_.write};
}

void CdiFiles::Write(const ClaimForm& form, const ClaimFacts& claim, Done done) {
  Add({.work =
           [disk = Disk(), form, claim] {
             RESMGR_RETURN_IF_ERROR(WriteSpec(disk, form.kind, claim.grant));
             if (!form.metadata || claim.claim.parts.empty()) return OkStatus();
             return WriteMetadata(disk, claim.claim, claim.grant);
           },
       .done = std::move(done)});
}

void CdiFiles::Remove(const std::string& uid, Done done) {
  Add({.work = [disk = Disk(), uid] { return RemoveFiles(disk, uid); },
       .done = std::move(done),
       .removes = true});
}

void CdiFiles::Reconcile(const ClaimForm& form, std::vector<ClaimFacts> held, Others others,
                         Done done) {
  Add({.work = [disk = Disk(), form, held = std::move(held),
                others] { return ReconcileFiles(disk, form, held, others); },
       .done = std::move(done),
       .settles = debts_});
}

void CdiFiles::Add(Order added) {
  const bool full = orders_.size() >= kMostWaiting;
  const auto order = orders_.insert(orders_.end(), std::move(added));
  if (full) order->work = nullptr;
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
  // The failure is reported in the next turn of the loop: callers do not expect an answer within
  // the call.
  orders_.front().deadline =
      options_.loop.After(std::chrono::milliseconds(0), [this, begun] { Ended(begun); });
}

void CdiFiles::Ended(const Status& status) {
  under_way_ = false;
  const Order order = std::move(orders_.front());
  orders_.pop_front();
  if (!status.ok() && order.removes) ++debts_;
  if (status.ok() && order.settles) settled_ = *order.settles;
  Begin();
  if (order.done) order.done(status);
}

// The order under way stays first, so that no other order overtakes it. Removals stay in the queue,
// too: a hanging write before one may still be carried out and must be undone.
void CdiFiles::Late(std::list<Order>::iterator order) {
  const Done done = std::exchange(order->done, nullptr);
  const bool refused = order->work == nullptr;
  const bool first = under_way_ && order == orders_.begin();
  if (refused && order->removes) ++debts_;
  if (refused || (!first && !order->removes)) orders_.erase(order);
  Begin();
  done(refused ? ResourceExhausted("too many files of claims wait for {}", options_.directory)
               : DeadlineExceeded("{} has not answered for {} ms", options_.directory,
                                  options_.deadline.count()));
}

std::string CdiSpec(std::string_view kind, std::string_view uid, const CpuSet& cpus) {
  nlohmann::ordered_json environment = nlohmann::ordered_json::array();
  environment.push_back(fmt::format("{}={}", ClaimVariable(uid), cpus.ToString()));
  nlohmann::ordered_json device;
  device["name"] = ClaimDeviceName(uid);
  device["containerEdits"]["env"] = std::move(environment);
  nlohmann::ordered_json spec;
  spec["cdiVersion"] = kCdiVersion;
  spec["kind"] = kind;
  spec["devices"] = nlohmann::ordered_json::array({std::move(device)});
  return OrderedJsonText(spec) + "\n";
}

std::string CdiFileName(std::string_view kind, std::string_view uid) {
  return fmt::format("{}{}{}", FilePrefix(kind), uid, kCdiExtension);
}

std::optional<std::string> UidInFileName(std::string_view prefix, std::string_view file_name) {
  if (file_name.ends_with(kTemporary)) file_name.remove_suffix(kTemporary.size());
  if (!file_name.ends_with(kCdiExtension)) return std::nullopt;
  file_name.remove_suffix(kCdiExtension.size());
  if (!file_name.starts_with(prefix)) return std::nullopt;
  const std::string_view uid = file_name.substr(prefix.size());
  return IsClaimUid(uid) ? std::optional(std::string(uid)) : std::nullopt;
}

std::optional<std::string> UidOfCdiFile(std::string_view file_name) {
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind})
    if (std::optional<std::string> uid = UidInFileName(FilePrefix(kind), file_name)) return uid;
  return std::nullopt;
}

}  // namespace resmgr::dra
