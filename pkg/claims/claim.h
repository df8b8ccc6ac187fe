// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// One result of a claim's allocation for our driver.
struct ClaimPart {
  std::string request{};  // main request's name
  std::string device{};   // name of the device: "cpu-numa-0"
  std::optional<int>
      node{};    // NUMA node (operating-system number) of the device; nullopt: any place
  int cpus = 0;  // number of whole CPUs, > 0
  // Set if the device is an L3 cache and not a NUMA node: its number (NumberOfCache).
  std::optional<int> l3_of{};

  friend bool operator==(const ClaimPart&, const ClaimPart&) = default;
};

// A claim's opaque parameters for our driver.
struct ClaimOptions {
  bool whole_cores = false;             // all threads of each of its cores
  bool share_within_pod = false;        // all containers of a pod may use the claim; else only one
  std::optional<CoreKind> core_type{};  // all CPUs are of cores of this kind
  bool l3 = false;                      // the CPUs of each part lie in one L3 cache
  // The claim holds whole cores, but containers see one thread of each.
  bool avoid_siblings = false;

  bool WholeCores() const { return whole_cores || avoid_siblings; }

  friend bool operator==(const ClaimOptions&, const ClaimOptions&) = default;
};

// A ResourceClaim (resource.k8s.io) for CPUs, as its allocation describes it.
struct Claim {
  std::string uid;
  std::string namespace_name;
  std::string name;
  std::vector<ClaimPart> parts;  // at least one
  ClaimOptions options{};
  // Uids of the pods that may use the claim, as far as known: more may come while it is held.
  // Empty: all pods of its namespace may.
  std::vector<std::string> pods{};
  // The driver that the claim was allocated from; "": not known, since a former version of the
  // daemon saved the claim.
  std::string driver{};
  // Pools of the devices, one for each part; empty: not known.
  std::vector<std::string> pools{};
  // The claim's name in its pod's spec, if it was made from a template for that pod; else "".
  std::string pod_claim{};

  bool IsFor(std::string_view pod_uid) const;
  // Whether `other` is the same claim (uid, namespace, name) with the same request; pods, driver
  // and pools may differ.
  bool AsksAs(const Claim& other) const;

  friend bool operator==(const Claim&, const Claim&) = default;
};

// The CPUs that a claim holds until its release: neither shared containers nor other claims use
// them.
struct ClaimGrant {
  std::string uid;
  std::vector<CpuSet> cpus;  // one for each part, in order; disjoint
  // The part of `cpus` that containers see, for each part of the claim; empty: they see all of
  // `cpus`.
  std::vector<CpuSet> seen{};

  CpuSet All() const;
  CpuSet Seen() const;

  friend bool operator==(const ClaimGrant&, const ClaimGrant&) = default;
};

// Holds the CPUs of claims on this node. A grant survives restarts of the daemon and lasts until
// its release, whatever becomes of the containers that carry the claim. Loop's thread only; `done`
// may run before the call returns.
class ClaimHolder {
 public:
  virtual ~ClaimHolder() = default;

  // Reserves CPUs for all parts of the claim, or for none. Runs `done` with the grant when the
  // reservation is on the disk and no shared container is on these CPUs any more. A uid that is
  // held gets the same grant again. Errors, with nothing reserved:
  //   ResourceExhausted: names the need, what is free and what holds the rest;
  //   InvalidArgument: no node of this kind can ever grant it;
  //   FailedPrecondition: no policy is active that gives exclusive CPUs, or all parameters;
  //   Unavailable: the disk or the runtime does not do its part now; later it may.
  virtual void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) = 0;
  // Gives the claim's CPUs back, and shared containers get them at once. OK for an unknown uid.
  virtual void Release(const std::string& uid, std::function<void(Status)> done) = 0;
  // By uid, ascending.
  virtual std::vector<ClaimGrant> Held() const = 0;
};

}  // namespace resmgr
