// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/api/nri.pb.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// A container that is created, as no plugin has changed it. It may have hundreds of variables, and
// its message is seldom needed: so it is made anew for each use.
class PristineContainer {
 public:
  virtual ~PristineContainer() = default;

  virtual const api::PodSandbox& pod() const = 0;
  // By which plugins know it.
  virtual const std::string& id() const = 0;
  virtual api::Container Make() const = 0;
  // Of it, id, name and seccomp profile alone.
  virtual api::Container MakeOutline() const = 0;
  // CreateContainerRequest with the pod and this container, encoded.
  virtual std::string Question() const = 0;
};

}  // namespace resmgr::nri
