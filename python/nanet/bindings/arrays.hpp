// SPDX-License-Identifier: Apache-2.0
// Vectors to numpy arrays without a copy.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "bindings.hpp"

namespace nanet::bindings {

// An object that the stub calls an array; nanobind would say `object`.
class Array : public nb::object {
  NB_OBJECT_DEFAULT(Array, nb::object, "numpy.typing.NDArray[typing.Any]", nb::ndarray_check)
};

// shape: row-major; empty: one dimension.
template <class T>
Array to_array(std::vector<T> values, std::vector<std::size_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<T>*>(pointer); });
  return nb::steal<Array>(nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner)).release());
}

// A structured array: `records` as raw bytes, seen by numpy as the dtype that `fields` (name, format, offset) describes.
struct Field {
  const char* name;
  const char* format;
  std::size_t offset;
};

template <class T>
Array to_records(const std::vector<T>& records, std::initializer_list<Field> fields) {
  std::vector<std::uint8_t> bytes(records.size() * sizeof(T));
  if (!records.empty()) std::memcpy(bytes.data(), static_cast<const void*>(records.data()), bytes.size());
  nb::list names;
  nb::list formats;
  nb::list offsets;
  for (const Field& field : fields) {
    names.append(field.name);
    formats.append(field.format);
    offsets.append(field.offset);
  }
  nb::dict spec;
  spec["names"] = names;
  spec["formats"] = formats;
  spec["offsets"] = offsets;
  spec["itemsize"] = sizeof(T);
  const nb::object dtype = nb::module_::import_("numpy").attr("dtype")(spec);
  return nb::steal<Array>(nb::object(to_array(std::move(bytes)).attr("view")(dtype)).release());
}

}  // namespace nanet::bindings
