// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/model/container_details.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts the lists in the view of a container (container_view.h).

// Adds "NAME=value"; a variable that exists gets the new value in its place.
void AddEnvironment(const Environment& environment,
                    google::protobuf::RepeatedPtrField<std::string>& env);

// The same as encoded fields of an api::Container, without a string for each. False, with nothing
// added, if a variable is repeated or is not ASCII, which requires AddEnvironment.
bool AppendPlainEnvironment(const Environment& image, const Environment& own,
                            FieldWriter& container);

// Adds mounts with OCI's options. A mounted image has the type "image" and its reference as source.
void AddMounts(const std::vector<Mount>& mounts,
               google::protobuf::RepeatedPtrField<api::Mount>& to);

// Adds the namespaces that a runtime will give the container: its own ones without a path, those of
// the pod with the path known from the pod, and none if it uses the node's.
void AddNamespaces(const ContainerSecurity& security, const api::PodSandbox& pod,
                   api::LinuxContainer& linux);

void AddSeccomp(const ContainerSecurity& security, api::LinuxContainer& linux);

void SetHooks(const std::vector<OciHook>& hooks, api::Hooks& to);
void SetLimits(const std::vector<ResourceLimit>& limits, api::Container& container);

}  // namespace resmgr::nri
