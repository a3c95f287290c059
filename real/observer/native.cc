// The part of the observer that every call pays for. traces/recorder/rollcall_recorder/observer.py explains its
// purpose, and does the same, more slowly, if this module cannot be loaded.
//
// One file for CPython 3.9 and later: it is built without Python's headers, and the interpreter provides everything
// that is declared below. All of it is in the stable ABI, or has been the same since 3.9.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

// --- declarations of CPython (Include/object.h, methodobject.h, moduleobject.h, pyframe.h) ---

extern "C" {

struct PyTypeObject;
struct PyFrameObject;
struct PyObject {
  ptrdiff_t references;
  PyTypeObject* type;
};
using PyCFunction = PyObject* (*)(PyObject*, PyObject*);
struct PyMethodDef {
  const char* name;
  PyCFunction function;
  int flags;
  const char* doc;
};
struct PyMemberDef {
  const char* name;
  int type;
  ptrdiff_t offset;
  int flags;
  const char* doc;
};
struct PyType_Slot {
  int slot;
  void* value;
};
struct PyType_Spec {
  const char* name;
  int size;
  int item_size;
  unsigned flags;
  PyType_Slot* slots;
};
struct PyModuleDef {
  PyObject base;
  PyObject* (*init)();
  ptrdiff_t index;
  PyObject* copy;
  const char* name;
  const char* doc;
  ptrdiff_t size;
  PyMethodDef* methods;
  void *slots, *traverse, *clear, *free;
};

extern PyTypeObject PyList_Type, PyTuple_Type, PyLong_Type;
extern PyObject _Py_NoneStruct;

void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);  // also of null
void PyErr_Clear();
PyObject* PyErr_Occurred();
int PyArg_ParseTuple(PyObject*, const char*, ...);
PyObject* Py_BuildValue(const char*, ...);
PyObject* PyDict_New();
int PyDict_SetItem(PyObject*, PyObject*, PyObject*);
PyFrameObject* PyEval_GetFrame();
PyFrameObject* PyFrame_GetBack(PyFrameObject*);
PyObject* PyFrame_GetCode(PyFrameObject*);
__attribute__((weak)) int PyFrame_GetLasti(PyFrameObject*);  // since 3.11
PyObject* PyList_GetItem(PyObject*, ptrdiff_t);
PyObject* PyList_New(ptrdiff_t);
int PyList_Append(PyObject*, PyObject*);
ptrdiff_t PyList_Size(PyObject*);
long long PyLong_AsLongLong(PyObject*);
unsigned long long PyLong_AsUnsignedLongLong(PyObject*);
PyObject* PyMethod_New(PyObject*, PyObject*);
PyObject* PyModule_Create2(PyModuleDef*, int);
PyObject* PyObject_Call(PyObject*, PyObject*, PyObject*);
PyObject* PyObject_CallFunctionObjArgs(PyObject*, ...);
PyObject* PyObject_GetAttr(PyObject*, PyObject*);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
int PyObject_IsTrue(PyObject*);
__attribute__((weak)) PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t,
                                                    PyObject*);  // since 3.11
PyObject* PyTuple_GetItem(PyObject*, ptrdiff_t);
PyObject* PyTuple_New(ptrdiff_t);
int PyTuple_SetItem(PyObject*, ptrdiff_t, PyObject*);
ptrdiff_t PyTuple_Size(PyObject*);
int PyType_IsSubtype(PyTypeObject*, PyTypeObject*);
PyObject* PyType_FromSpec(PyType_Spec*);
PyObject* PyUnicode_InternFromString(const char*);
PyObject* PyVectorcall_Call(PyObject*, PyObject*, PyObject*);
PyObject* _PyObject_New(PyTypeObject*);

}  // extern "C"

namespace {

constexpr int abi_version = 3;
constexpr int takes_arguments = 1;  // METH_VARARGS
constexpr unsigned type_flags =
    1U << 18U | 1U << 17U | 1U << 11U;  // version tag, method descriptor, vectorcall
constexpr size_t offset_flag = size_t{1} << (8 * sizeof(size_t) - 1);  // PY_VECTORCALL_ARGUMENTS_OFFSET
enum Slot { tp_call = 50, tp_descr_get = 54, tp_getattro = 58, tp_members = 72 };

PyObject* none() {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

// --- a table by number; 0 is not a key ---

struct Entry {
  uint64_t key, first, second;
};

struct Table {
  Entry* entries = nullptr;
  size_t size = 0;  // a power of two
  size_t used = 0;

  size_t home_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15U >> 20U) & (size - 1); }

  // The key's entry, or the empty one where it would be. Half of the entries are empty.
  Entry& entry_of(uint64_t key) const {
    size_t place = home_of(key);
    while (entries[place].key != 0 && entries[place].key != key) {
      place = (place + 1) & (size - 1);
    }
    return entries[place];
  }

  Entry* find(uint64_t key) const {
    Entry* const entry = size != 0 ? &entry_of(key) : nullptr;
    return entry != nullptr && entry->key != 0 ? entry : nullptr;
  }

  // False if there is no memory.
  bool put(const Entry& entry) {
    if (2 * used >= size && !grow()) {
      return false;
    }
    Entry& place = entry_of(entry.key);
    used += place.key == 0 ? 1 : 0;
    place = entry;
    return true;
  }

  void erase(uint64_t key) {
    Entry* found = find(key);
    if (found == nullptr) {
      return;
    }
    size_t hole = static_cast<size_t>(found - entries);
    --used;
    for (size_t next = (hole + 1) & (size - 1); entries[next].key != 0; next = (next + 1) & (size - 1)) {
      const size_t home = home_of(entries[next].key);
      if (((next - home) & (size - 1)) >= ((next - hole) & (size - 1))) {
        entries[hole] = entries[next];
        hole = next;
      }
    }
    entries[hole].key = 0;
  }

  void clear() {
    free(entries);
    *this = Table();
  }

 private:
  bool grow() {
    Table larger;
    larger.size = size == 0 ? 64 : 2 * size;
    larger.entries = static_cast<Entry*>(calloc(larger.size, sizeof(Entry)));
    if (larger.entries == nullptr) {
      return false;
    }
    for (size_t i = 0; i < size; ++i) {
      if (entries[i].key != 0) {
        larger.put(entries[i]);
      }
    }
    free(entries);
    *this = larger;
    return true;
  }
};

uint64_t key_of(const void* object) { return reinterpret_cast<uint64_t>(object); }

// --- the state of the process; the interpreter's lock guards it ---

struct Group {
  PyObject* known;  // observer.py's
  uint64_t number, collectives;
  bool ends_on_host;
};

uint64_t* ring = nullptr;  // in the layout of ring.py; null: nothing is recorded
uint64_t mask = 0;         // for the numbers of records
uint64_t last_number = 0;
Table groups;   // by torch's object: a Group
Table calls;    // by a call's arguments and call site: its number in the ring's table
Table codes;    // by code object: 1, or 0 if it is not the user's
Table pending;  // by Work, which is kept alive: the number, and whether waiting ends on the host
PyTypeObject* tensor_type = nullptr;
PyObject *is_users = nullptr, *new_call = nullptr, *mark_after = nullptr;
PyObject *shape_word, *dtype_word, *root_word, *lasti_word, *file_word, *wrapped_word;
PyTypeObject* method_type;

// Words of the header, and of a record (ring.py).
enum Word { issued_word = 7, finished_word = 10, first_record = 512, record_words = 8 };
enum Field { number_field, created_field, finished_field, call_field = 4, seq_field, flags_field };
constexpr uint64_t has_failed = 4;

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000U + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t* record_of(uint64_t number) { return ring + first_record + (number & mask) * record_words; }

void store(uint64_t* word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

uint64_t issue(uint64_t call, uint64_t group, uint64_t seq, uint64_t flags) {
  const uint64_t number = ++last_number;
  uint64_t* record = record_of(number);
  store(record + number_field, 0);
  store(record + created_field, now());
  store(record + finished_field, 0);
  store(record + 3, 0);
  store(record + call_field, call | group << 32U);
  store(record + seq_field, seq);
  store(record + flags_field, flags);
  store(record + number_field, number);
  store(ring + issued_word, number);
  return number;
}

void finish(uint64_t number, bool failed) {
  if (ring == nullptr) {
    return;
  }
  uint64_t* record = record_of(number);
  if (record[number_field] != number || record[finished_field] != 0) {
    return;
  }
  if (failed) {
    store(record + flags_field, record[flags_field] | has_failed);
  }
  store(record + finished_field, now());
  store(ring + finished_word, ring[finished_word] + 1);
}

void keep(PyObject* work, uint64_t number, bool ends_on_host) {
  if (pending.find(key_of(work)) == nullptr && pending.put({key_of(work), number, ends_on_host ? 1U : 0U})) {
    Py_IncRef(work);
  }
}

// The work is over; only the first of several reports counts.
void let_go(PyObject* work, bool failed) {
  const Entry* entry = pending.find(key_of(work));
  if (entry != nullptr) {
    finish(entry->first, failed);
    pending.erase(key_of(work));
    Py_DecRef(work);
  }
}

// Lets go of a table's objects, and calls `end` for each of its entries.
template <typename End>
void forget(Table& table, const End& end) {
  Table old = table;
  table = Table();
  for (size_t i = 0; i < old.size; ++i) {
    if (old.entries[i].key != 0) {
      Py_DecRef(reinterpret_cast<PyObject*>(old.entries[i].key));
      end(old.entries[i]);
    }
  }
  old.clear();
}

void forget_groups() {
  forget(groups, [](const Entry& entry) {
    auto* group = reinterpret_cast<Group*>(entry.first);
    Py_DecRef(group->known);
    free(group);
  });
}

// --- a call's arguments and call site, as a number ---

void add(uint64_t& key, uint64_t value) {
  key = (key ^ value) * 0xff51afd7ed558ccdU;
  key ^= key >> 32U;
}

void add_attribute(uint64_t& key, PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  if (value == nullptr) {
    PyErr_Clear();
    add(key, 1);
    return;
  }
  if (PyType_IsSubtype(value->type, &PyTuple_Type)) {
    const ptrdiff_t size = PyTuple_Size(value);
    add(key, static_cast<uint64_t>(size));
    for (ptrdiff_t i = 0; i < size; ++i) {
      add(key, static_cast<uint64_t>(PyLong_AsLongLong(PyTuple_GetItem(value, i))));
    }
  } else if (value->type == &PyLong_Type) {
    add(key, static_cast<uint64_t>(PyLong_AsLongLong(value)));
  } else {
    add(key, key_of(value));  // a dtype lives as long as torch
  }
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();  // a symbolic size
  }
  Py_DecRef(value);
}

void add_argument(uint64_t& key, PyObject* value, bool is_rooted) {
  if (value->type == &PyList_Type) {
    const ptrdiff_t size = PyList_Size(value);
    add(key, static_cast<uint64_t>(size));
    for (ptrdiff_t i = 0; i < size; ++i) {
      add_argument(key, PyList_GetItem(value, i), false);
    }
  } else if (value->type == tensor_type || PyType_IsSubtype(value->type, tensor_type)) {
    add_attribute(key, value, shape_word);
    add_attribute(key, value, dtype_word);
  } else if (value->type == &PyLong_Type) {
    add(key, static_cast<uint64_t>(PyLong_AsLongLong(value)));
    PyErr_Clear();
  } else if (is_rooted) {
    add_attribute(key, value, root_word);
  } else {
    add(key, 2);
  }
}

bool is_code_of_user(PyObject* code) {
  const Entry* known = codes.find(key_of(code));
  if (known != nullptr) {
    return known->first != 0;
  }
  PyObject* file = PyObject_GetAttr(code, file_word);
  PyObject* answer = file != nullptr ? PyObject_CallFunctionObjArgs(is_users, file, nullptr) : nullptr;
  const bool yes = answer != nullptr && PyObject_IsTrue(answer) == 1;
  Py_DecRef(file);
  Py_DecRef(answer);
  PyErr_Clear();
  if (codes.put({key_of(code), yes ? 1U : 0U, 0})) {
    Py_IncRef(code);  // forever, so that no other object gets its address
  }
  return yes;
}

uint64_t instruction_of(PyFrameObject* frame) {
  if (PyFrame_GetLasti != nullptr) {
    return static_cast<uint64_t>(PyFrame_GetLasti(frame));
  }
  uint64_t key = 0;
  add_attribute(key, reinterpret_cast<PyObject*>(frame), lasti_word);
  return key;
}

// Adds every frame up to the user's second one, because a helper has several callers.
void add_place(uint64_t& key) {
  PyFrameObject* frame = PyEval_GetFrame();
  bool is_ours = false;
  for (int users = 0; frame != nullptr;) {
    PyObject* code = PyFrame_GetCode(frame);
    add(key, key_of(code));
    add(key, instruction_of(frame));
    users += is_code_of_user(code) ? 1 : 0;
    Py_DecRef(code);
    PyFrameObject* back = users < 2 ? PyFrame_GetBack(frame) : nullptr;
    if (is_ours) {
      Py_DecRef(reinterpret_cast<PyObject*>(frame));
    }
    frame = back;
    is_ours = true;
  }
}

// --- methods that replace torch's ---

using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

struct Method {
  PyObject base;
  Vectorcall call;
  PyObject* wrapped;   // the replaced attribute
  PyObject* original;  // the function in it
  PyObject* name;
  bool is_rooted;
};

PyObject* tuple_of(PyObject* const* values, ptrdiff_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (ptrdiff_t i = 0; tuple != nullptr && i < count; ++i) {
    Py_IncRef(values[i]);
    PyTuple_SetItem(tuple, i, values[i]);
  }
  return tuple;
}

PyObject* dict_of(PyObject* const* values, PyObject* names) {
  PyObject* dict = PyDict_New();
  const ptrdiff_t count = names != nullptr ? PyTuple_Size(names) : 0;
  for (ptrdiff_t i = 0; dict != nullptr && i < count; ++i) {
    PyDict_SetItem(dict, PyTuple_GetItem(names, i), values[i]);
  }
  return dict;
}

PyObject* invoke(PyObject* original, PyObject* const* arguments, size_t flagged, PyObject* names) {
  if (PyObject_Vectorcall != nullptr) {
    return PyObject_Vectorcall(original, arguments, flagged, names);
  }
  const auto count = static_cast<ptrdiff_t>(flagged & ~offset_flag);
  PyObject* positional = tuple_of(arguments, count);
  PyObject* named = dict_of(arguments + count, names);
  PyObject* result =
      positional != nullptr && named != nullptr ? PyObject_Call(original, positional, named) : nullptr;
  Py_DecRef(positional);
  Py_DecRef(named);
  return result;
}

uint64_t describe(const Method& method, const Group& group, uint64_t key, PyObject* const* arguments,
                  ptrdiff_t count, PyObject* names) {
  uint64_t call = 0;
  PyObject* positional = tuple_of(arguments + 1, count - 1);
  PyObject* named = dict_of(arguments + count, names);
  PyObject* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  if (positional != nullptr && named != nullptr && frame != nullptr) {
    PyObject* number =
        PyObject_CallFunctionObjArgs(new_call, group.known, method.name, positional, named, frame, nullptr);
    call = number != nullptr ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_DecRef(number);
  }
  Py_DecRef(positional);
  Py_DecRef(named);
  PyErr_Clear();  // however strange the call is, the observer must not end the job
  calls.put({key, call, 0});
  return call;
}

// Keeps what shows that a call has completed: its Work or, if torch returns none because the GPU's current stream runs
// the call, a mark behind it on that stream.
void keep_completion(PyObject* work, uint64_t number, bool ends_on_host, PyObject* const* arguments,
                     ptrdiff_t count) {
  if (work != &_Py_NoneStruct) {
    keep(work, number, ends_on_host);
    return;
  }
  PyObject* positional = ends_on_host ? nullptr : tuple_of(arguments + 1, count - 1);
  PyObject* mark = positional != nullptr ? PyObject_Call(mark_after, positional, nullptr) : nullptr;
  if (mark != nullptr && mark != &_Py_NoneStruct) {
    keep(mark, number, false);
  } else {
    finish(number, false);
  }
  Py_DecRef(positional);
  Py_DecRef(mark);
  PyErr_Clear();  // whatever went wrong, the observer must not end the job
}

PyObject* call_method(PyObject* callable, PyObject* const* arguments, size_t flagged, PyObject* names) {
  const Method& method = *reinterpret_cast<Method*>(callable);
  const auto count = static_cast<ptrdiff_t>(flagged & ~offset_flag);
  const Entry* found = ring != nullptr && count > 0 ? groups.find(key_of(arguments[0])) : nullptr;
  if (found == nullptr) {
    return invoke(method.original, arguments, flagged, names);
  }
  auto& group = *reinterpret_cast<Group*>(found->first);
  const bool ends_on_host = group.ends_on_host;
  uint64_t key = group.number;
  add(key, key_of(method.name));
  for (ptrdiff_t i = 1; i < count; ++i) {
    add_argument(key, arguments[i], method.is_rooted);
  }
  add_place(key);
  key |= 1U;
  const Entry* known = calls.find(key);
  const uint64_t seq = ++group.collectives;
  const uint64_t call =
      known != nullptr ? known->first : describe(method, group, key, arguments, count, names);
  const uint64_t number = issue(call, group.number, seq, 0);
  PyObject* work = invoke(method.original, arguments, flagged, names);
  if (work == nullptr) {
    finish(number, true);
  } else {
    keep_completion(work, number, ends_on_host, arguments, count);
  }
  return work;
}

PyObject* call_wait(PyObject* callable, PyObject* const* arguments, size_t flagged, PyObject* names) {
  const Method& method = *reinterpret_cast<Method*>(callable);
  PyObject* result = invoke(method.original, arguments, flagged, names);
  const Entry* entry = (flagged & ~offset_flag) > 0 ? pending.find(key_of(arguments[0])) : nullptr;
  if (entry != nullptr && (result == nullptr || entry->second != 0)) {
    let_go(arguments[0], result == nullptr);
  }
  return result;
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == &_Py_NoneStruct) {
    Py_IncRef(self);
    return self;
  }
  return PyMethod_New(self, object);
}

PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* wrapped = reinterpret_cast<Method*>(self)->wrapped;
  if (name == wrapped_word) {
    Py_IncRef(wrapped);
    return wrapped;
  }
  return PyObject_GetAttr(wrapped, name);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", 19 /* T_PYSSIZET */, offsetof(Method, call), 1 /* READONLY */, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {tp_descr_get, reinterpret_cast<void*>(bind)},
                       {tp_getattro, reinterpret_cast<void*>(attribute)},
                       {tp_members, members},
                       {0, nullptr}};
PyType_Spec method_spec = {"rollcall_recorder.native.Method", sizeof(Method), 0, type_flags, slots};

PyObject* new_method(PyObject* wrapped, PyObject* name, Vectorcall call, bool is_rooted) {
  PyObject* function = PyObject_GetAttrString(wrapped, "__func__");  // pybind11 wraps functions in methods
  if (function == nullptr) {
    PyErr_Clear();
    Py_IncRef(wrapped);
    function = wrapped;
  }
  auto* method = reinterpret_cast<Method*>(_PyObject_New(method_type));
  if (method != nullptr) {
    Py_IncRef(wrapped);
    Py_IncRef(name);
    method->call = call;
    method->wrapped = wrapped;
    method->original = function;
    method->name = name;  // interned, and kept forever
    method->is_rooted = is_rooted;
  }
  return reinterpret_cast<PyObject*>(method);
}

// --- the functions that observer.py and ring.py call ---

PyObject* py_set_up(PyObject*, PyObject* arguments) {
  PyObject* tensor = nullptr;
  if (PyArg_ParseTuple(arguments, "OOOO", &tensor, &is_users, &new_call, &mark_after) == 0) {
    return nullptr;
  }
  for (PyObject* each : {tensor, is_users, new_call, mark_after}) {
    Py_IncRef(each);
  }
  tensor_type = reinterpret_cast<PyTypeObject*>(tensor);
  return none();
}

PyObject* py_begin(PyObject*, PyObject* arguments) {
  unsigned long long address = 0;
  unsigned long long capacity = 0;
  if (PyArg_ParseTuple(arguments, "KK", &address, &capacity) == 0) {
    return nullptr;
  }
  ring = reinterpret_cast<uint64_t*>(address);
  mask = capacity - 1;
  last_number = 0;
  calls.clear();
  forget_groups();
  forget(pending, [](const Entry&) {});
  return none();
}

PyObject* py_add_group(PyObject*, PyObject* arguments) {
  PyObject* object = nullptr;
  PyObject* known = nullptr;
  unsigned long long number = 0;
  int ends_on_host = 0;
  if (PyArg_ParseTuple(arguments, "OOKp", &object, &known, &number, &ends_on_host) == 0) {
    return nullptr;
  }
  auto* group = static_cast<Group*>(malloc(sizeof(Group)));
  if (group != nullptr && groups.find(key_of(object)) == nullptr) {
    *group = {known, number, 0, ends_on_host != 0};
    groups.put({key_of(object), reinterpret_cast<uint64_t>(group), 0});
    Py_IncRef(object);
    Py_IncRef(known);
  }
  return none();
}

PyObject* py_forget_groups(PyObject*, PyObject*) {
  forget_groups();
  return none();
}

PyObject* py_issue(PyObject*, PyObject* arguments) {
  unsigned long long call = 0;
  unsigned long long group = 0;
  unsigned long long seq = 0;
  unsigned long long flags = 0;
  if (PyArg_ParseTuple(arguments, "KKKK", &call, &group, &seq, &flags) == 0) {
    return nullptr;
  }
  return Py_BuildValue("K", ring != nullptr ? issue(call, group, seq, flags) : 0);
}

PyObject* py_finish(PyObject*, PyObject* arguments) {
  unsigned long long number = 0;
  int failed = 0;
  if (PyArg_ParseTuple(arguments, "K|p", &number, &failed) == 0) {
    return nullptr;
  }
  finish(number, failed != 0);
  return none();
}

PyObject* py_keep(PyObject*, PyObject* arguments) {
  PyObject* work = nullptr;
  unsigned long long number = 0;
  int ends_on_host = 0;
  if (PyArg_ParseTuple(arguments, "OKp", &work, &number, &ends_on_host) == 0) {
    return nullptr;
  }
  keep(work, number, ends_on_host != 0);
  return none();
}

PyObject* py_pending(PyObject*, PyObject*) {
  PyObject* works = PyList_New(0);
  for (size_t i = 0; works != nullptr && i < pending.size; ++i) {
    if (pending.entries[i].key != 0) {
      PyList_Append(works, reinterpret_cast<PyObject*>(pending.entries[i].key));
    }
  }
  return works;
}

PyObject* py_let_go(PyObject*, PyObject* arguments) {
  PyObject* work = nullptr;
  int failed = 0;
  if (PyArg_ParseTuple(arguments, "Op", &work, &failed) == 0) {
    return nullptr;
  }
  let_go(work, failed != 0);
  return none();
}

PyObject* py_method(PyObject*, PyObject* arguments) {
  PyObject* original = nullptr;
  PyObject* name = nullptr;
  int is_rooted = 0;
  return PyArg_ParseTuple(arguments, "OOp", &original, &name, &is_rooted) != 0
             ? new_method(original, name, call_method, is_rooted != 0)
             : nullptr;
}

PyObject* py_wait(PyObject*, PyObject* arguments) {
  PyObject* original = nullptr;
  return PyArg_ParseTuple(arguments, "O", &original) != 0 ? new_method(original, original, call_wait, false)
                                                          : nullptr;
}

PyMethodDef functions[] = {{"set_up", py_set_up, takes_arguments, nullptr},
                           {"begin", py_begin, takes_arguments, nullptr},
                           {"add_group", py_add_group, takes_arguments, nullptr},
                           {"forget_groups", py_forget_groups, takes_arguments, nullptr},
                           {"issue", py_issue, takes_arguments, nullptr},
                           {"finish", py_finish, takes_arguments, nullptr},
                           {"keep", py_keep, takes_arguments, nullptr},
                           {"pending", py_pending, takes_arguments, nullptr},
                           {"let_go", py_let_go, takes_arguments, nullptr},
                           {"method", py_method, takes_arguments, nullptr},
                           {"wait", py_wait, takes_arguments, nullptr},
                           {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {{1, nullptr}, nullptr,   0,       nullptr, "native", nullptr,
                      -1,           functions, nullptr, nullptr, nullptr,  nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_native() {
  shape_word = PyUnicode_InternFromString("shape");
  dtype_word = PyUnicode_InternFromString("dtype");
  root_word = PyUnicode_InternFromString("rootRank");
  lasti_word = PyUnicode_InternFromString("f_lasti");
  file_word = PyUnicode_InternFromString("co_filename");
  wrapped_word = PyUnicode_InternFromString("__wrapped__");
  method_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&method_spec));
  return method_type != nullptr ? PyModule_Create2(&module, abi_version) : nullptr;
}
