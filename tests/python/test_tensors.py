"""Tensors and gradients, shared with NumPy and PyTorch."""

from __future__ import annotations

import array
import ctypes
import gc
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import attune
from attune import ops


def test_memory_is_shared_with_numpy_both_ways() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = attune.Tensor(values)
    assert tensor.shape == (2, 3) and tensor.dtype == "float32" and tensor.nbytes == 24
    values[1, 2] = 10
    view = np.asarray(tensor)
    assert view[1, 2] == 10 and np.shares_memory(view, values)
    view[0, 0] = -1
    assert values[0, 0] == -1
    assert np.shares_memory(np.from_dlpack(tensor), values)  # type: ignore[arg-type]
    assert np.shares_memory(tensor.numpy(), values)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_dtypes(dtype: str) -> None:
    values = np.array([[1, 2, 3]], dtype=dtype)
    tensor = attune.Tensor(values)
    assert tensor.dtype == dtype
    assert np.asarray(tensor).dtype == values.dtype and np.array_equal(np.asarray(tensor), values)
    assert tensor.tolist() == values.tolist()


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (3, 1), (0, 2), (2, 3)])
def test_fortran_order_is_refused_where_it_differs(shape: tuple[int, ...]) -> None:
    """What a tensor says of its order is what NumPy says of an array in C's order."""
    view = ctypes.create_string_buffer(256)  # a Py_buffer
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    order_c, order_fortran, any_order = 0x38, 0x58, 0x98  # PyBUF_C_CONTIGUOUS, ...
    tensor = attune.Tensor.zeros(list(shape))
    for flags in (order_c, any_order, order_fortran):
        if flags == order_fortran and not np.zeros(shape).flags.f_contiguous:
            with pytest.raises(BufferError, match="Fortran"):
                get(tensor, view, flags)
        else:
            get(tensor, view, flags)
            ctypes.pythonapi.PyBuffer_Release(view)


def test_memory_outlives_its_owner() -> None:
    tensor = attune.Tensor(np.full(1000, 3, dtype=np.float32))
    view = np.asarray(attune.Tensor(np.full(1000, 4, dtype=np.float32)))
    gc.collect()
    assert tensor.tolist() == [3.0] * 1000 and view.sum() == 4000


def test_what_cannot_be_shared_is_copied() -> None:
    values = np.arange(6, dtype=np.float32)
    values.flags.writeable = False
    copy = attune.Tensor(values)
    np.asarray(copy)[0] = 9
    assert values[0] == 0
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert np.array_equal(np.asarray(attune.Tensor(turned)), turned)
    assert attune.Tensor(array.array("d", [1, 2])).dtype == "float64"


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        attune.Tensor(np.zeros(2, dtype=np.complex64))
    with pytest.raises((TypeError, ValueError)):
        attune.Tensor(np.zeros((1,) * 7, dtype=np.float32))
    with pytest.raises(BufferError):
        memoryview(attune.Tensor(np.zeros(2, dtype=np.float32)).to("bfloat16"))  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="__init__ was not called"):
        memoryview(attune.Tensor.__new__(attune.Tensor))  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="bfloat16"):
        attune.Tensor(np.zeros(2, dtype=np.float32)).to("bfloat16").numpy()
    with pytest.raises(attune.ShapeError):
        ops.matmul(attune.Tensor.zeros([2, 3]), attune.Tensor.zeros([2, 3]))


def numeric_gradient(function: Any, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    gradient = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        for sign in (1, -1):
            moved = x.copy()
            moved[i] += sign * 1e-5
            gradient[i] += sign * function(moved) / 2e-5
    return gradient


def test_gradients_match_finite_differences() -> None:
    random = np.random.default_rng(1)
    x, weight = random.normal(size=(3, 4)), random.normal(size=(5, 4))
    cotangent = random.normal(size=(3, 5))

    def forward(values: np.ndarray[Any, Any]) -> attune.Tensor:
        return ops.softmax(ops.gelu(ops.linear(attune.Tensor(values), attune.Tensor(weight))))

    leaf = attune.Tensor(x, requires_grad=True)
    y = ops.softmax(ops.gelu(ops.linear(leaf, attune.Tensor(weight))))
    y.backward(attune.Tensor(cotangent))
    assert leaf.grad is not None
    expected = numeric_gradient(lambda v: float((np.asarray(forward(v)) * cotangent).sum()), x)
    assert np.allclose(np.asarray(leaf.grad), expected, atol=1e-7)


def test_a_computation_of_numpy_is_part_of_the_graph() -> None:
    x = np.random.default_rng(2).normal(size=(3, 4))
    leaf = attune.Tensor(x, requires_grad=True)
    hidden = ops.tanh(leaf)
    h = np.asarray(hidden)
    squared = ops.record(
        "square", [hidden], attune.Tensor(h**2), lambda dy: [attune.Tensor(2 * h * np.asarray(dy))]
    )
    ops.softmax(squared).backward(attune.Tensor(np.eye(3, 4)))
    assert leaf.grad is not None

    def function(v: np.ndarray[Any, Any]) -> float:
        e = np.exp(np.tanh(v) ** 2)
        return float((e / e.sum(axis=1, keepdims=True) * np.eye(3, 4)).sum())

    assert np.allclose(np.asarray(leaf.grad), numeric_gradient(function, x), atol=1e-7)


def test_an_error_of_a_gradient_is_raised() -> None:
    leaf = attune.Tensor(np.ones((2, 2)), requires_grad=True)

    def broken(dy: attune.Tensor) -> list[attune.Tensor]:
        raise KeyError("gradient")

    y = ops.record("broken", [leaf], attune.Tensor(np.ones((2, 2))), broken)
    with pytest.raises(KeyError, match="gradient"):
        y.backward()


def test_gradients_do_not_write_to_arrays() -> None:
    """Later gradients are added to the first one, whose memory may be that of the array that it came from."""
    leaf = attune.Tensor(np.zeros((2, 2)), requires_grad=True)
    ones = np.ones((2, 2))
    for _ in range(3):
        ops.add(leaf, attune.Tensor.zeros([2, 2], "float64")).backward(attune.Tensor(ones))
    assert leaf.grad is not None and leaf.grad.tolist() == [[3.0, 3.0]] * 2 and ones.sum() == 4
    leaf.clear_grad()
    for _ in range(3):
        ops.record("ones", [leaf], attune.Tensor(np.zeros((2, 2))), lambda dy: [attune.Tensor(ones)]).backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[3.0, 3.0]] * 2 and ones.sum() == 4


def test_what_is_no_gradient_is_refused() -> None:
    leaf = attune.Tensor(np.zeros((2, 2)), requires_grad=True)
    array: Any = np.zeros((2, 2))
    with pytest.raises(TypeError, match="a Tensor or None for each input"):
        ops.record("array", [leaf], attune.Tensor(array), lambda dy: [array]).backward()
    with pytest.raises(TypeError, match="a dict of names and tensors"):
        attune.Adam({"array": array})
    with pytest.raises(attune.ShapeError, match="set_gradient: expected shape"):
        leaf.set_grad(attune.Tensor.zeros([2, 3], "float64"))


def test_no_grad_records_nothing() -> None:
    leaf = attune.Tensor(np.ones((2, 2)), requires_grad=True)
    with attune.no_grad():
        assert not ops.relu(leaf).requires_grad
    assert ops.relu(leaf).requires_grad
    outer, inner = attune.no_grad(), attune.threads(1)
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(attune.Error, match="reverse order"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert ops.relu(leaf).requires_grad, "the outer block ends with the inner one"
    outer.__exit__(None, None, None)


def test_a_block_that_ends_on_another_thread_changes_nothing_there() -> None:
    leaf = attune.Tensor(np.ones((2, 2)), requires_grad=True)
    threads = attune.thread_count()

    def within() -> Generator[None, None, None]:
        with attune.no_grad():
            while True:
                yield

    def records() -> bool:
        with attune.threads(1):
            pass
        return ops.relu(leaf).requires_grad

    with ThreadPoolExecutor(1) as pool:
        for end in ("close", "collect"):
            generator = within()
            pool.submit(next, generator).result()
            assert not pool.submit(records).result()
            with attune.threads(1):
                if end == "close":
                    generator.close()
                del generator
                gc.collect()
                assert attune.thread_count() == 1
            assert attune.thread_count() == threads and ops.relu(leaf).requires_grad
            assert pool.submit(records).result(), "its own thread has ended it"


def test_threads_of_a_block() -> None:
    with attune.threads(1):
        assert attune.thread_count() == 1


def test_adam_takes_tensors_of_one_s_own() -> None:
    weight = attune.Tensor(np.zeros((1, 3), dtype=np.float32))
    adam = attune.Adam({"weight": weight})
    x = np.eye(3, dtype=np.float32)
    wanted = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    for _ in range(300):
        adam.clear_gradients()
        y = ops.linear(attune.Tensor(x), weight)
        y.backward(attune.Tensor(np.asarray(y) - wanted))
        adam.step(0.05)
    assert np.allclose(np.asarray(weight), [[1, 2, 3]], atol=0.05)


def test_memory_is_shared_with_pytorch() -> None:
    torch = pytest.importorskip("torch")
    tensor = attune.Tensor(np.arange(4, dtype=np.float32))
    there = torch.from_dlpack(tensor)
    there[0] = 5
    assert tensor.tolist()[0] == 5
    here = attune.Tensor(there)
    there[1] = 6
    assert here.tolist()[1] == 6
    half = torch.ones(3, dtype=torch.bfloat16)
    assert attune.Tensor(half).dtype == "bfloat16"
    assert torch.from_dlpack(attune.Tensor(half)).dtype == torch.bfloat16
