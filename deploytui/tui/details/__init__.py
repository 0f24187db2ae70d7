"""What the tabs say of the selected candidate: pure functions that give lines."""
