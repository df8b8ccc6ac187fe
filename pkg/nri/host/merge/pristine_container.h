// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pkg/api/nri.pb.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// A new container without plugins' changes. It may have hundreds of variables, and its message is
// seldom needed, so the message is built anew for each use.
class PristineContainer {
 public:
  virtual ~PristineContainer() = default;

  virtual const api::PodSandbox& pod() const = 0;
  // The id by which plugins know it.
  virtual const std::string& id() const = 0;
  virtual api::Container Make() const = 0;
  // A message with id, name and seccomp profile only.
  virtual api::Container MakeOutline() const = 0;
  // An encoded CreateContainerRequest with the pod and this container.
  virtual std::string Question() const = 0;
};

}  // namespace resmgr::nri
